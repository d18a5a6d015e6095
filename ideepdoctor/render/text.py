"""What a person reads in a terminal. The only module that uses rich."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ideepdoctor import __version__
from ideepdoctor.locale import columns, tr
from ideepdoctor.model.facts import Facts, OpCheck, Smoke
from ideepdoctor.model.findings import Finding, FixSafety, Judgement, Severity
from ideepdoctor.model.plan import Install, Plan
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn, Status, Summary, summarize, versions
from ideepdoctor.model.words import counted
from ideepdoctor.render import fleet_text

_LABEL = 8
"""Width of the first column: "skipped" and one more."""
_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


class _Console(Console):
    """Leaves it to the caller what happens when the reader has gone away: rich would end the process with 1."""

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles the error."""
        raise


def console(*, error: bool = False, file: IO[str] | None = None) -> Console:
    """A console that prints texts as they are.

    Args:
        error: standard error instead of standard output.
        file: this stream instead; then 100 columns wide.
    """
    width = None if file is None else 100
    return _Console(stderr=error, file=file, width=width, highlight=False, markup=False, emoji=False)


def render(report: Report, to: Console, *, fail_on: FailOn = FailOn.ERROR, details: bool = False) -> None:
    """Print a report.

    Args:
        report: what a command found, planned, did and proved.
        to: where to.
        fail_on: decides the exit code that the last line speaks of.
        details: show evidence, infos and the rules that were skipped (``-v``).
    """
    if report.facts is not None:
        to.print(_headline(report.facts))
    for line in report.body:
        to.print(Text(columns.line(line)), soft_wrap=True)  # a path that is broken cannot be copied
    if report.plan is not None:
        to.print(plan_lines(report.plan))
    if report.smoke is not None:
        to.print(smoke_lines(report.smoke, details=details, found_below=report.judgement is not None))
    fleet = "fleet" in report.extra
    if fleet:
        for part in fleet_text.blocks(report, fail_on, to.width, details=details):
            to.print(Text.assemble(*((tr(text), style) for text, style in part.head)))
            if part.rows:
                to.print(_rows(part.rows))
    elif report.judgement is not None:
        for block in _finding_blocks(report.judgement, details=details):
            to.print(block)
    if report.failure is not None:
        to.print(failure_lines(report.failure, details=details))
    if report.judgement is not None and not fleet:
        to.print(_closing(report, summarize(report, fail_on)))
    if verdict := report.extra.get("verdict"):
        _print_paragraph(to, str(verdict), "bold")
    for line in report.extra.get("next", ()):
        to.print(Text(f"  {tr(line)}"), soft_wrap=True)  # as above


def _print_paragraph(to: Console, text: str, style: str) -> None:
    """rich breaks lines at blanks alone, which Japanese has not."""
    told = tr(text)
    to.print(Text(told if told.isascii() else "\n".join(columns.wrap(text, to.width)), style=style))


class _Verbatim(str):
    """A value that is the same in every language."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Two columns, the second one wrapped within itself; no padding at the end of a line."""

    pairs: tuple[tuple[str, str], ...]
    indent: int

    def __rich_console__(self, to: Console, options: ConsoleOptions) -> RenderResult:
        names = [tr(name) for name, _ in self.pairs]
        label = max(
            [_LABEL, *(columns.width(name) for name, (_, value) in zip(names, self.pairs, strict=True) if value)]
        )
        width = max(20, options.max_width - self.indent - label - 1)
        for name, (_, value) in zip(names, self.pairs, strict=True):
            for number, line in enumerate(columns.wrap(value, width, verbatim=isinstance(value, _Verbatim))):
                shown = columns.ljust(name if number == 0 else "", label)
                yield Text.assemble(" " * self.indent, (shown, "dim"), " ", line)


def _rows(pairs: Iterable[tuple[str, str]], indent: int = 2) -> RenderableType:
    return _Rows(tuple(pairs), indent)


def _headline(facts: Facts) -> RenderableType:
    where = " ".join([*facts.target.transport, *facts.target.emulator, facts.target.python])
    chosen = f"{where} ({facts.target.reason})" if facts.target.reason else where
    cpu = facts.cpu.model_name or facts.cpu.vendor or facts.platform.machine
    usable = facts.limits.affinity_cpus
    count = "" if usable is None else f", {len(usable)} CPU{'s' if len(usable) != 1 else ''} usable"
    return Group(
        Text(f"ideepdoctor {__version__}", style="bold"),
        _rows([("target", chosen), ("has", _Verbatim(versions(facts))), ("cpu", f"{cpu}{count}")]),
    )


def plan_lines(plan: Plan) -> RenderableType:
    """A plan: each step with its reversibility, before anyone is asked."""
    lines: list[RenderableType] = [Text(f"{tr('plan')}: {tr(plan.title)}", style="bold")]
    for number, step in enumerate(plan.steps, 1):
        size = f", {step.size_bytes / 1e6:.0f} MB on disk" if isinstance(step, Install) and step.size_bytes else ""
        lines.append(_rows([(f"{number}.", step.title), ("", f"undo: {step.reversible}{size}")]))
    return Group(*lines)


def _worst(checks: Iterable[OpCheck], states: tuple[str, ...]) -> OpCheck | None:
    measured = [item for item in checks if item.status in states and item.max_relative_error is not None]
    return max(measured, key=lambda item: item.max_relative_error or 0.0, default=None)


def smoke_lines(smoke: Smoke, *, details: bool = False, found_below: bool = False) -> RenderableType:
    """Used, right, faster: three lines, and each case that is not right where no findings follow that name them."""
    if smoke.failure:
        return _rows([("smoke", f"could not run: {smoke.failure}")])
    used = {True: "yes", False: "NO, NumPy did the work", None: "not known"}[smoke.used]
    kernel = f", kernel {smoke.kernel}" if smoke.kernel else ""
    tried = [item for item in smoke.checks if item.status != "not-run"]
    bad = [item for item in tried if item.failed]
    best = _worst(smoke.checks, ("right",))
    error = "" if best is None or best.max_relative_error is None else f", worst error {best.max_relative_error:.1e}"
    rest = "; the others are the findings below" if bad and found_below else ""
    pairs = [
        ("used", f"{used}{kernel}, {smoke.threads} thread{'s' if smoke.threads != 1 else ''}"),
        ("right", f"{len(tried) - len(bad)} of {len(tried)} checks agree with float64{error}{rest}"),
    ]
    if details or not found_below:
        pairs += [("", f"{item.status}: {describe(item)}") for item in bad]
    if details:
        pairs += [("", f"{item.status}: {describe(item)}") for item in smoke.checks if item not in bad]
    if smoke.timing is not None:
        timing = smoke.timing
        pairs.append(
            (
                "speed",
                f"{timing.case}: {timing.ratio:.1f} times NumPy ({timing.ratio_low:.1f} to {timing.ratio_high:.1f}), "
                f"{timing.ideep_gflops:.0f} GFLOP/s",
            )
        )
    return Group(Text(tr("smoke test"), style="bold"), _rows(pairs))


def describe(check: OpCheck) -> str:
    """One check in words: what, in which shapes, how far off or how it died."""
    parts = [f"{check.op} {check.case}".strip()]
    if check.max_relative_error is not None:
        parts.append(f"error {check.max_relative_error:.1e}")
    if check.message:
        parts.append(check.message)
    known = f" (known hazard {check.hazard})" if check.hazard else ""
    return ", ".join(parts) + known


def _finding_blocks(judgement: Judgement, *, details: bool) -> list[RenderableType]:
    blocks: list[RenderableType] = []
    for item in judgement.findings:
        if item.severity is Severity.INFO and not details:
            continue
        blocks.append(finding_lines(item, details=details))
    for unknown in judgement.unknown:
        head = Text.assemble((tr("unknown"), "bold magenta"), f"  {unknown.code}  {tr(unknown.title)}")
        blocks.append(Group(head, _rows([("because", unknown.reason)])))
    if details:
        blocks.extend(_rows([("skipped", f"{item.code} because of {item.because}")], 0) for item in judgement.skipped)
        blocks.extend(
            _rows([("accepted", f"{item.code} {item.title}: {item.found} ({item.reason})")], 0)
            for item in judgement.suppressed
        )
    return blocks


def finding_lines(item: Finding, *, details: bool = False) -> RenderableType:
    """A finding: found against needed, what follows, one next command, where to read more."""
    head = Text.assemble((tr(str(item.severity)), _STYLE[item.severity]), f"  {item.code}  {tr(item.title)}")
    pairs = [("found", item.found), ("needed", item.needed), ("so", item.consequence), ("next", item.next_step)]
    if details:
        for seen in item.evidence:
            pairs.append(("seen", " - ".join(part for part in (seen.text, seen.path) if part)))
            pairs.append(("", f"see it: {seen.command}" if seen.command else ""))
    pairs.append(("more", item.explain))
    return Group(head, _rows(pairs))


def failure_lines(failure: Failure, *, details: bool = False) -> RenderableType:
    """An error: what happened and what to do; the context with ``-v``."""
    rows = [("", line) for line in failure.hint.splitlines()]
    if rows:
        rows[0] = ("do", rows[0][1])
    if details:
        rows += [(name, value) for name, value in failure.context.items()]
    return Group(Text.assemble((tr("error"), "bold red"), "  ", tr(failure.message)), _rows(rows))


def _closing(report: Report, summary: Summary) -> RenderableType:
    """The last lines: one that says what the whole comes to."""
    parts = [counted(summary.errors, "error"), counted(summary.warnings, "warning")]
    accepted = len(() if report.judgement is None else report.judgement.suppressed)
    hidden = [f"{counted(summary.infos, 'note')} (-v shows)"] if summary.infos else []
    hidden += [f"{accepted} accepted (-v shows)"] if accepted else []
    others = [f"{counted(summary.skipped, 'check')} skipped because of them"] if summary.skipped else []
    others += [f"{summary.unknown} undecided"] if summary.unknown else []
    if summary.status is Status.HEALTHY:
        quick = report.facts is not None and report.facts.mode == "quick"
        word = "no fault seen (static checks only)" if quick else "no fault seen"
        if report.command == "libs":
            word = "no conflict seen"
        return Text.assemble((tr(word), "bold green"), *(f", {tr(part)}" for part in hidden))
    serious = ", ".join(tr(part) for part in parts if not part.startswith("0 ")) or tr("no fault seen")
    style = {Status.FINDINGS: "bold red" if summary.errors else "bold yellow"}.get(summary.status, "bold magenta")
    last = Text.assemble((serious, style), *(f", {tr(part)}" for part in [*others, *hidden]))
    cure = _common_cure(report)
    return last if cure is None else Group(last, Text(tr(cure)))


def _common_cure(report: Report) -> str | None:
    """One line for many findings that one command cures; None where there are not several."""
    found = () if report.judgement is None else report.judgement.findings
    serious = [item for item in found if item.severity is not Severity.INFO]
    cured = [item.next_step for item in serious if item.fix is FixSafety.SAFE]
    if len(cured) < 2 or len(set(cured)) > 1:
        return None
    if len(cured) == len(serious):
        return f"all of them are cured by: {cured[0]}"
    return f"{len(cured)} of them are cured by: {cured[0]}"


class Spinner:
    """A line that moves: the bar of steps and the last thing that happened; gone when the command is done."""

    def __init__(self) -> None:
        self._bar = Progress(
            SpinnerColumn("line"),
            TextColumn("{task.fields[title]}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=console(error=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, title="")
        self._title, self._begun = "", 0

    def step(self, index: int, total: int, title: str) -> None:
        """A step begins; ``index`` counts from 1."""
        self._title, self._begun = f"[{index}/{total}] {tr(title)}", index - 1
        self._show(self._title)
        self._bar.update(self._task, total=total, completed=index - 1)

    def detail(self, text: str) -> None:
        """Something happened within the step."""
        self._show(f"{self._title}: {tr(text)}" if self._title else tr(text))

    def share(self, part: float) -> None:
        """The bar moves within the step."""
        self._bar.update(self._task, completed=self._begun + min(1.0, max(0.0, part)))

    def note(self, text: str) -> None:
        """A line above the one that moves."""
        self._bar.console.print(Text(tr(text)), soft_wrap=True)

    def close(self) -> None:
        """Take the line away before the result is printed."""
        self._bar.stop()

    def _show(self, text: str) -> None:
        width = max(20, self._bar.console.width - 36)
        shown = text
        while columns.width(shown) > width:
            shown = f"{shown.removesuffix('...')[:-1]}..."
        self._bar.start()
        self._bar.update(self._task, title=shown)
