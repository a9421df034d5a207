"""The page in a browser, as people use it: clicks, keys, zoom, search, themes, narrow screens, print, hostile names."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.render.pages import HOSTILE, page_of, trace
from tests.rules.test_live_loader import loading

selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install -e '.[dev]')")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMEDRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and CHROMEDRIVER), reason="chromium and chromedriver are not installed (.ci/install-browser-and-tmux)"
)

WIDTHS = (320, 400, 768, 1200, 1600)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = selenium.Chrome(options=options, service=selenium.ChromeService(CHROMEDRIVER))
    driver.set_script_timeout(20)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.html"
    names = ["gemm", "relu", "softmax"]
    path.write_text(page_of(trace(folder / "a.sqlite", names)), encoding="ascii")
    return path


@pytest.fixture
def shown(browser: Any, page: Path) -> Iterator[Any]:
    """The page, freshly opened; whatever the test did, the console stays empty."""
    browser.get_log("browser")
    open_page(browser, page)
    yield browser
    assert browser.get_log("browser") == []


def open_page(browser: Any, page: Path, width: int = 1200, **features: str) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    media = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    browser.get(page.as_uri())
    settle(browser)


def settle(browser: Any) -> None:
    """Until what is due has been drawn."""
    browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));")


def find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def press(browser: Any, *keys: str) -> None:
    selenium.ActionChains(browser).send_keys(*keys).perform()
    settle(browser)


def readout(browser: Any) -> str:
    return str(find(browser, "#timeline-readout").text)


def in_sight(browser: Any) -> bytes:
    """The pixels of the picture."""
    data = browser.execute_script("return document.getElementById('timeline-canvas').toDataURL().split(',')[1]")
    return base64.b64decode(data)


def focus_rows(browser: Any) -> None:
    browser.execute_script("document.querySelector('#timeline-rows button[tabindex=\"0\"]').focus()")
    settle(browser)


def middle_of(browser: Any, selector: str) -> Any:
    element = find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    settle(browser)
    return element


# ---- the page ------------------------------------------------------------------------------------------------------


def test_findings_open_by_click_and_by_key(shown: Any) -> None:
    first, second = shown.find_elements("css selector", ".finding")[:2]
    assert first.get_attribute("open")
    assert not second.get_attribute("open")
    summary = second.find_element("css selector", "summary")
    summary.click()
    assert second.get_attribute("open")
    press(shown, selenium.Keys.ENTER)
    assert not second.get_attribute("open")


def test_a_table_is_sorted_by_its_headers(shown: Any) -> None:
    head = middle_of(shown, "#kernels th:nth-child(4) button")  # total

    def keys() -> list[float]:
        cells = shown.find_elements("css selector", "#kernels tbody td:nth-child(4)")
        return [float(cell.get_attribute("data-key")) for cell in cells]

    head.click()
    assert find(shown, "#kernels th:nth-child(4)").get_attribute("aria-sort") == "descending"
    assert keys() == sorted(keys(), reverse=True)
    press(shown, selenium.Keys.ENTER)
    assert find(shown, "#kernels th:nth-child(4)").get_attribute("aria-sort") == "ascending"
    assert keys() == sorted(keys())
    name = middle_of(shown, "#kernels th:nth-child(1) button")
    name.click()
    names = [cell.text for cell in shown.find_elements("css selector", "#kernels tbody td:nth-child(1)")]
    assert names == sorted(names)
    assert find(shown, "#kernels th:nth-child(4)").get_attribute("aria-sort") == "none"


def test_a_table_is_filtered(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(page_of(trace(tmp_path / "a.sqlite", [f"kernel_{letter}" for letter in "abcdefghij"])), "ascii")
    open_page(browser, page)
    middle_of(browser, "#kernels .filter input").send_keys("KERNEL_C")
    rows = browser.find_elements("css selector", "#kernels tbody tr")
    assert [row.text.split()[0] for row in rows if row.is_displayed()] == ["kernel_c"]
    assert find(browser, "#kernels .filter output").text == "1 of 10 rows"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_theme_is_that_of_the_system_until_it_is_chosen(browser: Any, page: Path, system: str) -> None:
    open_page(browser, page, prefers_color_scheme=system)
    paper = "return getComputedStyle(document.body).backgroundColor"
    colors = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
    other = "dark" if system == "light" else "light"
    assert browser.execute_script(paper) == colors[system]
    before = in_sight(browser)
    find(browser, "#theme").click()
    settle(browser)
    assert browser.execute_script(paper) == colors[other]
    assert find(browser, "#theme").get_attribute("aria-pressed") == str(other == "dark").lower()
    assert in_sight(browser) != before


@pytest.mark.parametrize("system", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(browser: Any, page: Path, system: str) -> None:
    """WCAG 2.1, 1.4.3: a contrast of 4.5 to 1 at least, worked out as 1.4.3 defines it."""
    open_page(browser, page, prefers_color_scheme=system)
    pairs = browser.execute_script(
        """
        const behind = (element) => {
          const color = getComputedStyle(element).backgroundColor;
          return color === "rgba(0, 0, 0, 0)" && element.parentElement ? behind(element.parentElement) : color;
        };
        const texts = document.querySelectorAll("p, h1, h2, h3, h4, th, td, a, button, summary, li, dt, .severity");
        const seen = [...texts].filter((each) => each.innerText && each.checkVisibility());
        return [...new Set(seen.map((each) => getComputedStyle(each).color + "|" + behind(each)))];
        """
    )
    assert len(pairs) > 5

    def luminance(color: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for pair in pairs:
        darker, lighter = sorted(map(luminance, pair.split("|")))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, pair


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_every_width(browser: Any, page: Path, width: int) -> None:
    open_page(browser, page, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script("return document.getElementById('timeline-canvas').clientWidth") > width / 3


def test_it_prints_on_some_pages(browser: Any, page: Path) -> None:
    open_page(browser, page, prefers_color_scheme="dark")
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 15
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert find(browser, ".still-picture").is_displayed()
    assert not find(browser, "#timeline-tool").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_javascript_the_text_and_a_picture_remain(browser: Any, page: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert find(browser, ".still-picture").is_displayed()
        assert not find(browser, "#timeline-tool").is_displayed()
        assert not find(browser, "#theme").is_displayed()
        assert "gemm" in find(browser, "#kernels").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


# ---- the timeline --------------------------------------------------------------------------------------------------


def test_the_timeline_is_walked_with_keys_alone(shown: Any) -> None:
    focus_rows(shown)
    whole = in_sight(shown)
    assert readout(shown).startswith("busy of GPU 0")
    press(shown, ".")
    assert readout(shown) == "gemm; at 3.000 ms, 3.00 ms; busy"
    press(shown, ".")
    assert readout(shown) == "copy; at 6.000 ms, 1.00 ms; busy"
    press(shown, ",", selenium.Keys.ENTER)
    details = find(shown, "#timeline-details")
    assert details.is_displayed()
    assert "gemm" in details.text
    assert "3.000000 ms" in details.text
    press(shown, "+")
    closer = in_sight(shown)
    assert closer != whole
    press(shown, selenium.Keys.ARROW_RIGHT)
    assert in_sight(shown) != closer
    press(shown, "0", selenium.Keys.ESCAPE, selenium.Keys.ARROW_DOWN, selenium.Keys.ARROW_DOWN)
    assert not details.is_displayed()
    assert readout(shown).startswith("ranges of thread ")


def test_only_one_row_is_in_the_order_of_tab(shown: Any) -> None:
    focus_rows(shown)
    press(shown, selenium.Keys.TAB)
    assert not shown.execute_script("return document.activeElement.closest('#timeline-rows')")
    keys = selenium.ActionChains(shown)
    keys.key_down(selenium.Keys.SHIFT).send_keys(selenium.Keys.TAB).key_up(selenium.Keys.SHIFT).perform()
    assert shown.execute_script("return Boolean(document.activeElement.closest('#timeline-rows'))")


def test_gaps_are_stepped_through_and_measured(shown: Any) -> None:
    focus_rows(shown)
    press(shown, "0", "n")
    assert readout(shown).startswith("Idle for 6.00 ms from ")
    first = readout(shown)
    press(shown, "n")
    assert readout(shown) != first
    press(shown, "p")
    assert readout(shown) == first


def test_a_search_finds_and_goes_from_one_to_the_next(shown: Any) -> None:
    plain = in_sight(shown)
    box = middle_of(shown, "#timeline-search")
    box.send_keys("softmax")
    settle(shown)
    assert find(shown, "#timeline-found").text == "12 found"  # kernels, ranges and marks of four steps
    assert in_sight(shown) != plain
    box.send_keys(selenium.Keys.ENTER)
    assert find(shown, "#timeline-found").text == "1 of 12"
    assert readout(shown).startswith("softmax; at ")
    find(shown, "#found-next").click()
    assert find(shown, "#timeline-found").text == "2 of 12"
    box.clear()
    box.send_keys("no such kernel")
    assert find(shown, "#timeline-found").text == "0 found"


def test_a_finding_shows_where_it_is(shown: Any) -> None:
    button = middle_of(shown, ".finding[open] button.place:nth-of-type(2)")
    button.click()
    settle(shown)
    assert readout(shown).startswith("Selected 6.00 ms")
    assert "busy 0.0 %" in readout(shown)
    assert shown.execute_script("return Boolean(document.activeElement.closest('#timeline-rows'))")


def test_dragging_measures_and_a_double_click_zooms(shown: Any) -> None:
    canvas = middle_of(shown, "#timeline-canvas")
    whole = in_sight(shown)
    mouse = selenium.ActionChains(shown)
    mouse.move_to_element(canvas).click_and_hold().move_by_offset(200, 0).release().perform()
    settle(shown)
    assert re.match(r"Selected \d+\.\d\d ms from \d+\.\d\d\d ms: .* busy \d+\.\d %", readout(shown))
    marked = in_sight(shown)
    assert marked != whole
    focus_rows(shown)
    press(shown, "z")
    assert in_sight(shown) != marked


def test_the_wheel_zooms_when_the_picture_has_the_focus_and_scrolls_the_page_before(shown: Any) -> None:
    canvas = middle_of(shown, "#timeline-canvas")
    whole, top = in_sight(shown), shown.execute_script("return scrollY")
    origin = selenium.common.actions.wheel_input.ScrollOrigin.from_element(canvas)
    selenium.ActionChains(shown).scroll_from_origin(origin, 0, 60).perform()
    settle(shown)
    assert in_sight(shown) == whole
    assert shown.execute_script("return scrollY") != top
    middle_of(shown, "#timeline-canvas").click()
    settle(shown)
    before = in_sight(shown)
    selenium.ActionChains(shown).scroll_from_origin(origin, 0, -120).perform()
    settle(shown)
    assert in_sight(shown) != before


def test_the_pointer_says_what_is_under_it(shown: Any) -> None:
    canvas = middle_of(shown, "#timeline-canvas")
    left = -canvas.size["width"] // 2 + 195
    mouse = selenium.ActionChains(shown)
    for step in range(0, 120, 6):
        mouse.move_to_element_with_offset(canvas, left + step, -canvas.size["height"] // 2 + 32)
    mouse.perform()
    tip = find(shown, ".tip")
    assert re.search(r"(gemm|copy); at \d+\.\d+ ms, \d\.00 ms; busy", tip.get_attribute("textContent"))


def test_groups_close_and_open(shown: Any) -> None:
    height = "return document.getElementById('timeline-stack').clientHeight"
    group = middle_of(shown, "#timeline-rows .group:nth-of-type(1)")
    before = shown.execute_script(height)
    group.click()
    assert find(shown, "#timeline-rows .group").get_attribute("aria-expanded") == "false"
    assert shown.execute_script(height) < before
    press(shown, selenium.Keys.ENTER)
    assert shown.execute_script(height) == before


def test_a_counter_stands_on_zero_and_reaches_up_to_its_largest_value(browser: Any, tmp_path: Path) -> None:
    """One that never changes, too: it looked like 0."""
    page = tmp_path / "page.html"
    page.write_text(page_of(loading().write(tmp_path / "run.diag")), encoding="ascii")
    open_page(browser, page)
    top = browser.execute_script(
        """
        const canvas = document.getElementById("timeline-canvas");
        const row = document.querySelector("#timeline-rows .row");
        const [from, tall] = [parseFloat(row.style.top), parseFloat(row.style.height)];
        const column = canvas.getContext("2d").getImageData(canvas.width / 2 + 7, from, 1, tall).data;
        return Array.from({ length: tall }, (_, y) => column[4 * y + 3]).findIndex((alpha) => alpha > 200);
        """
    )
    assert 0 <= top <= 4


# ---- what nobody should be able to do ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_do_nothing(browser: Any, tmp_path: Path, name: str) -> None:
    safe = HOSTILE[name].encode("utf-8", "replace").decode()
    page = tmp_path / "page.html"
    page.write_text(page_of(trace(tmp_path / "a.sqlite", [safe or "x", "gemm"])), encoding="ascii")
    browser.get_log("browser")
    open_page(browser, page)
    for finding in browser.find_elements("css selector", ".finding:not([open]) > summary"):
        finding.click()
    focus_rows(browser)
    press(browser, ".", selenium.Keys.ENTER, ".", ".", selenium.Keys.ENTER)
    assert not browser.execute_script("return document.querySelector('img, main script:not([type])')")
    assert browser.execute_script("return document.querySelectorAll('a:not([href^=\"#\"])').length") == 0
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.get_log("browser") == []
    assert "diag" in browser.title
