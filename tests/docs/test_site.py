"""The site builds without a warning, and neither its pages nor its search need anything from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.docs.shown import ROOT

pytest.importorskip("material", reason="MkDocs Material is not installed (pip install -e '.[dev]')")

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "link": "href"}
ELSEWHERE = re.compile(r"(?:https?:)?//")


class Parsed(HTMLParser):
    """What a page loads, where it leads to, and what leads to it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        self.ids.add(of.get("id") or "")
        if tag in LOADED and (target := of.get(LOADED[tag])) and of.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(target)
        if tag == "a" and (target := of.get("href")):
            self.links.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make site` does; strict: a warning is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> Mapping[Path, Parsed]:
    return {path: Parsed(path.read_text("utf-8")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_every_page_is_there_and_in_the_navigation(site: Path, pages: Mapping[Path, Parsed]) -> None:
    home = site / "index.html"
    reached = {(home.parent / unquote(link)).resolve() for link in pages[home].links if not ELSEWHERE.match(link)}
    assert len(pages) > 150
    assert [path.relative_to(site).as_posix() for path in pages if path not in reached] == []


def test_links_lead_to_pages_and_to_headings_of_them(site: Path, pages: Mapping[Path, Parsed]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            if ELSEWHERE.match(link) or link.startswith("mailto:"):
                continue
            target, _, anchor = unquote(link).partition("#")
            to = (path.parent / target).resolve() if target else path
            if not to.exists() or (anchor and to in pages and anchor not in pages[to].ids):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_pages_load_nothing_from_elsewhere(site: Path, pages: Mapping[Path, Parsed]) -> None:
    for path, page in pages.items():
        for target in page.loads:
            assert not ELSEWHERE.match(target), f"{path.relative_to(site)} loads {target}"
            assert target.startswith("data:") or (path.parent / unquote(target)).exists(), f"{path.name}: {target}"


def test_styles_and_pictures_load_nothing_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.css"), *site.rglob("*.svg")]
    assert len(files) > 20
    for path in files:
        found = re.findall(r"(?:@import|url\()\s*['\"]?((?:https?:)?//[^'\")]+)", path.read_text("utf-8"))
        assert found == [], path


def test_pages_of_the_repository_lead_to_pages_of_the_site(site: Path) -> None:
    assert 'href="examples/kubernetes.html"' in (site / "distributed.html").read_text("utf-8")
    case = (site / "formats/case.html").read_text("utf-8")
    assert "schema.sql" in case
    assert "../../diag" not in case


def test_questions_of_lessons_are_numbered(site: Path) -> None:
    lessons = [*site.glob("learn/*/[0-9]*.html")]
    assert lessons
    assert [path.name for path in lessons if "<ol>" not in path.read_text("utf-8")] == []


def test_the_verbs_are_as_the_terminal_shows_them(site: Path) -> None:
    verbs = (site / "verbs.html").read_text("utf-8")
    assert "diag plan comm" in verbs
    assert "Usage: diag report [OPTIONS] INPUT..." in verbs
    assert (
        max(len(line) for block in re.findall(r"<code>(.*?)</code>", verbs, re.S) for line in block.splitlines()) < 120
    )


# ---- in a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture
def browser() -> Iterator[Any]:
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install -e '.[dev]')")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed (.ci/install-browser-and-tmux)")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    shown = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    yield shown
    shown.quit()


def requested(browser: Any) -> Sequence[str]:
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]


def test_it_is_read_and_searched_from_a_disk(site: Path, browser: Any) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get((site / "index.html").as_uri())
    browser.find_element("name", "query").send_keys("spilled registers")
    links = WebDriverWait(browser, 20).until(lambda of: of.find_elements("css selector", "a.md-search-result__link"))
    assert any("rules/kernels.local_memory" in link.get_attribute("href") for link in links)
    assert [url for url in requested(browser) if not url.startswith(("file:", "data:"))] == []
    assert browser.get_log("browser") == []


def test_reports_of_eighty_columns_fit_and_code_does_not_wrap(site: Path, browser: Any) -> None:
    browser.get((site / "start.html").as_uri())
    blocks = "[...document.querySelectorAll('pre > code')]"
    assert browser.execute_script(f"return {blocks}.every(each => each.scrollWidth <= each.clientWidth)")
    assert browser.execute_script(f"return {blocks}.every(each => getComputedStyle(each).whiteSpace == 'pre')")


def test_it_follows_the_scheme_of_its_reader(site: Path, browser: Any) -> None:
    colours = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get((site / "plots.html").as_uri())
        colours.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert colours[0] == "rgb(255, 255, 255)" != colours[1]
