"""
The log of an execution on its page: the output lines of all steps, or of one, with their colours.

The address says which lines: `stream=stderr`, `find=` a text, `lines=` the number after which to
begin. A page reads `LINES` events, however long the log is; only a search reads on. EX-28.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from attrs import frozen

from adapters_http.console.paths import number_in
from adapters_http.console.values import SHOWN
from adapters_http.request import Request
from wfcore.model.event import Event
from wfcore.rules.explain.progress import attempts_of
from wfcore.rules.explain.source_lines import brief, cause_of
from wfcore.rules.explain.timeline import earlier_attempts
from wfcore.rules.masking import mask_text, secret_values
from wfcore.time import DurationMs, EpochMs
from wfcore.usecases.executions.browsing import ExecutionDetail
from wfcore.usecases.executions.executions import read_logs
from wfcore.wire.events import LogView, log_view

LINES, LONGEST = 200, 2_000
"""The most events with output lines on a page, and the most characters of a line."""
STREAMS = ("stdout", "stderr")
_CAUSE = 6
"""The fewest characters of a line that may be the cause of an error."""


@frozen
class AttemptEnd:
    """
    The failed end of attempt `number` of `attempts`, in one line. `pause`: the time until the next
    attempt; None after the last.
    """

    at: EpochMs
    number: int
    attempts: int
    error: str
    pause: DurationMs | None


@frozen
class LogLine:
    """
    A line that a step wrote. `pieces`: the text in parts, each with a class for its colour. `cut`:
    the number of characters that were cut off. `ended`: the attempt before, if another begins here.
    `hit`: whether the line names the cause of the step's error.
    """

    at: EpochMs
    step: str
    attempt: int
    stream: str
    pieces: Sequence[tuple[str, str]]
    cut: int
    ended: AttemptEnd | None
    hit: bool


@frozen
class Log:
    """
    The lines of a page. `after`: the number after which further lines come, or None. `last`: the
    number of the last line. `sought`: the text that all lines contain. `stream`: the only stream.
    `step`: the key of the only step. `end`: the failed end of the step after all these lines.
    """

    lines: Sequence[LogLine]
    after: int | None
    last: int
    sought: str
    stream: str | None
    step: str | None
    end: AttemptEnd | None


async def log_of(request: Request, whole: ExecutionDetail, step: str | None) -> Log:
    """The lines that the address asks for. *step*: the key of the only step."""
    after = number_in(request.query("lines"))
    sought = (request.query("find") or "").strip()
    stream = request.query("stream") if request.query("stream") in STREAMS else None
    services, who = request.services, request.who
    _, found, last = await read_logs(
        services, who, whole.run.id, after, step, LINES, stream=stream, search=sought
    )
    ends = _Ends(whole)
    lines, more = _lines(found, ends)
    filled = len(found) >= LINES or bool((sought or stream) and found)
    next = more or (last if filled else None)
    end = ends.last(step) if step and lines and not next else None
    return Log(lines, next, more or last, sought, stream, step, end)


class _Ends:
    """The failed attempts of the steps of an execution."""

    def __init__(self, whole: ExecutionDetail) -> None:
        self._results = whole.run.step_results
        self._earlier = earlier_attempts(whole.retried)
        self._secrets = secret_values(whole.run)
        self._known = dict[str, Sequence[AttemptEnd]]()

    def of(self, key: str) -> Sequence[AttemptEnd]:
        """The failed attempts of the step with *key*, the first one first."""
        if key not in self._known:
            self._known[key] = list(self._read(key))
        return self._known[key]

    def before(self, key: str, attempt: int) -> AttemptEnd | None:
        """The end of the attempt before *attempt*."""
        return next((one for one in self.of(key) if one.number == attempt - 1), None)

    def last(self, key: str) -> AttemptEnd | None:
        """The failed end of the last attempt."""
        return next((one for one in self.of(key) if one.pause is None), None)

    def causes(self, key: str) -> Sequence[str]:
        """The cause of each failed attempt, in one line."""
        return [cause_of(one.error) for one in self.of(key)]

    def _read(self, key: str) -> Iterator[AttemptEnd]:
        result = self._results.get(key)
        found = list(attempts_of(key, result, self._earlier)) if result else []
        for number, (one, following) in enumerate(zip_longest(found, found[1:]), 1):
            if one.error is None or one.until is None:
                continue
            pause = DurationMs(following.since - one.until) if following else None
            error = brief(mask_text(one.error, self._secrets))
            yield AttemptEnd(one.until, number, len(found), error, pause)


def _lines(found: Sequence[Event], ends: _Ends) -> tuple[Sequence[LogLine], int | None]:
    """
    The lines of a page, about `SHOWN` characters at most, each line up to `LONGEST`; and the number
    after which further lines come, or None.
    """
    lines, room, attempts = list[LogLine](), SHOWN, dict[str, int]()
    for place, event in enumerate(found):
        if room <= 0:
            return lines, found[place - 1].number
        view = log_view(event)
        begins = view.attempt > attempts.get(view.step, 1)
        attempts[view.step] = view.attempt
        for text in view.text.splitlines():
            ended = ends.before(view.step, view.attempt) if begins else None
            lines.append(_line(view, text, ended, ends.causes(view.step)))
            room -= min(len(text), LONGEST)
            begins = False
    return lines, None


def _line(view: LogView, text: str, ended: AttemptEnd | None, causes: Sequence[str]) -> LogLine:
    bare = _SGR.sub("", text).strip()
    hit = len(bare) >= _CAUSE and any(bare in cause for cause in causes)
    pieces, cut = list(coloured(text[:LONGEST])), max(len(text) - LONGEST, 0)
    at = EpochMs(view.at)
    return LogLine(at, view.step, view.attempt, view.stream, pieces, cut, ended, hit)


_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_COLOURS = {
    31: "bad", 91: "bad", 32: "good", 92: "good", 33: "warn", 93: "warn", 34: "link", 94: "link",
    35: "link", 95: "link", 36: "link", 96: "link", 90: "soft",
}  # fmt: skip
_BOLD = 1


def coloured(text: str) -> Iterator[tuple[str, str]]:
    """
    *text* in parts, each with the class of the colour that its terminal codes ask for: colours and
    bold, in the colours of the page. Other codes stay in the text.
    """
    colour, bold, at = "", "", 0
    for code in _SGR.finditer(text):
        if code.start() > at:
            yield f"{colour} {bold}".strip(), text[at : code.start()]
        at = code.end()
        for number in (int(one or 0) for one in code[1].split(";")):
            if number == 0:
                colour = bold = ""
            elif number == _BOLD:
                bold = "strong"
            else:
                colour = _COLOURS.get(number, colour)
    if at < len(text):
        yield f"{colour} {bold}".strip(), text[at:]
