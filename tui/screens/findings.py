"""Findings: what the rules said, ranked, and everything behind each."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input

from diag.model import units
from diag.render.palette import SEVERITIES
from diag.rules.finding import Evidence, Finding, Severity
from diag.rules.report import Report
from diag.tui.finding_page import finding_entries, jumps
from diag.tui.navigation import Target, ToFinding
from diag.tui.rule_answers import RuleAnswers, answer_entries, by_rule
from diag.tui.screens.evidence import EvidenceScreen
from diag.tui.screens.view import View
from diag.tui.text import content
from diag.tui.widgets.finding_lines import finding_line
from diag.tui.widgets.page import Entry, Page, heading, prose

Item = Finding | RuleAnswers


class Findings(View):
    NAME = "findings"
    AUTO_FOCUS = "#list"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012  # as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", priority=True),
        Binding("s", "severity", "Severity"),
        Binding("n", "next_group", "Group", show=False),
        Binding("t", "jump('timeline')", "Timeline"),
        Binding("k", "jump('kernel')", "Kernel", show=False),
        Binding("l", "jump('launch')", "Launch", show=False),
        Binding("r", "jump('roofline')", "Roofline", show=False),
        Binding("e", "explain", "Rule"),
        Binding("c", "copy(False)", "Copy", show=False),
        Binding("C", "copy(True)", "Copy id", show=False),
    ]
    HELP = """
# Findings

**List.** Ranked by severity, then by what could be won at most, as a share of the window. Below stand the rules that
found nothing (*clear*) and those that cannot tell, with the reason. Enter opens one; a wide terminal shows it beside
the list.

**Finding.** Enter on a figure opens its formula, its SQL and the rows. *What could be won* is an upper bound with
everything else as it was; findings that overlap do not add up.

`s` leaves critical ones only, then warnings too, then shows all. `/` searches titles, rules and kernels. `n` goes to
the next group. `t`, `k`, `l` and `r` go to its time, its kernel, its profile, its point
in the roofline. `c` copies the command that explains it, `C`
its id.
"""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[object, Item] = {}
        self._item: Item | None = None
        self._least: Severity = "info"
        self._wanted = ""

    def body(self) -> ComposeResult:
        yield Input(placeholder="Search titles, rules and kernels", id="search", compact=True)
        with Horizontal():
            yield Page(self._list, id="list")
            yield Page(self._detail, id="detail")

    async def show(self, target: Target) -> None:
        if isinstance(target, ToFinding):
            self._set_filter("", "info")
            self._list_page.refill()
            if self._list_page.reach(target.finding_id):
                self._open(target.finding_id)

    @property
    def _list_page(self) -> Page:
        return self.query_one("#list", Page)

    @property
    def _detail_page(self) -> Page:
        return self.query_one("#detail", Page)

    # ---- the list ----------------------------------------------------------------------------------------------

    def _list(self, width: int) -> list[Entry]:
        report = self.session.report
        findings = [finding for finding in report.findings if self._is_wanted(report, finding)]
        clear = [of for of in by_rule(report.clear) if of.matches(self._wanted)]
        untold = [of for of in by_rule(report.cannot_tell) if of.matches(self._wanted)]
        self._items = {f.id: f for f in findings} | {of.key: of for of in (*clear, *untold)}
        entries = [Entry(Content.styled(self._title(len(findings), len(report.findings)), "bold underline"))]
        for finding in findings:
            shown = finding_line(report, finding, width)
            entries.append(Entry(shown, partial(self._open, finding.id), finding.id))
        for title, group in (("Clear", clear), ("Cannot tell", untold)):
            if group:
                entries.append(heading(f"{title} ({units.count(len(group), 'rule')})"))
            entries += [
                Entry(Content("  ") + content(of.line, room=width - 2), partial(self._open, of.key), of.key)
                for of in group
            ]
        return entries

    def _title(self, shown: int, of: int) -> str:
        graver = {"info": "", "warning": "warning or critical", "critical": "critical"}[self._least]
        searched = f"'{self._wanted}'" if self._wanted else ""
        why = ", ".join(filter(None, (graver, searched)))
        return f"Found ({shown} of {of}: {why})" if why else f"Found ({of})"

    def _is_wanted(self, report: Report, finding: Finding) -> bool:
        ranks = list(SEVERITIES)
        kernel = finding.subject.kernel or ""
        names = (finding.title, finding.rule, finding.id, kernel, report.short_names.get(kernel, ""))
        return ranks.index(finding.severity) <= ranks.index(self._least) and self._wanted in " ".join(names).casefold()

    def _set_filter(self, wanted: str, least: Severity) -> None:
        if (wanted, least) != (self._wanted, self._least):
            self._wanted, self._least = wanted, least
            self._list_page.refill(keep=False)
        if not wanted:
            self.query_one("#search", Input).value = ""
            self.set_class(False, "-searching")

    def action_severity(self) -> None:
        following: dict[Severity, Severity] = {"info": "critical", "critical": "warning", "warning": "info"}
        self._set_filter(self._wanted, following[self._least])

    def action_next_group(self) -> None:
        self._close()
        self._list_page.reach_next_group()

    def action_search(self) -> None:
        self._close()
        self.set_class(True, "-searching")
        self.query_one("#search").focus()

    @on(Input.Changed, "#search")
    def _searched(self, event: Input.Changed) -> None:
        if event.value:
            self._set_filter(event.value.casefold(), self._least)
        elif self._wanted:
            self._wanted = ""
            self._list_page.refill(keep=False)

    @on(Input.Submitted, "#search")
    def _found(self) -> None:
        self._list_page.focus()

    # ---- what is open ------------------------------------------------------------------------------------------

    @on(Page.Reached, "#list")
    def _reached(self, event: Page.Reached) -> None:
        self._item = self._items.get(event.entry.key)
        self._detail_page.refill(keep=False)

    def _open(self, key: object) -> None:
        self._item = self._items[key]
        self.set_class(True, "-open")
        self._detail_page.refill(keep=False)
        self._detail_page.focus()

    def _close(self) -> None:
        self.set_class(False, "-open")
        self._list_page.focus()

    def action_back(self) -> None:
        """From what is open to the list, from a search to all."""
        if self._list_page.has_focus or self.query_one("#search").has_focus:
            self._set_filter("", "info")
        self._close()

    def _detail(self, width: int) -> list[Entry]:
        report = self.session.report
        match self._item:
            case Finding() as finding:
                entries = finding_entries(
                    report, finding, width, go=self.go, explain=self.diag.explain, open_evidence=self._open_evidence
                )
                return list(entries)
            case RuleAnswers() as of:
                rule = Entry(Content("\n  e  all about this rule"), partial(self.diag.explain, of.rule), "rule")
                return [*answer_entries(report, of, width), rule]
        return [Entry(prose("Nothing is open.", width, "dim"))]

    def _open_evidence(self, finding: Finding, evidence: Evidence) -> None:
        self.app.push_screen(EvidenceScreen(finding.title, evidence))

    def action_jump(self, where: str) -> None:
        if isinstance(self._item, Finding) and (target := jumps(self.session.report, self._item).get(where)):
            self.go(target)

    def action_explain(self) -> None:
        if self._item:
            self.diag.explain(self._item.rule)

    def action_copy(self, only_id: bool) -> None:
        match self._item:
            case Finding(id=finding_id):
                self.diag.copy(finding_id if only_id else f"diag explain {finding_id}", "the finding")
            case RuleAnswers(rule=rule):
                self.diag.copy(rule if only_id else f"diag explain {rule}", "the rule")
