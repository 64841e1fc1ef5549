"""
The log of an execution on its page: the output lines of all steps, or of one, with their colours.

The address says which lines: `stream=stderr`, `find=` a text, `lines=` the number after which to
begin. EX-28.
"""

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from adapters_http.console.paths import number_in
from adapters_http.console.values import SHOWN
from adapters_http.request import Request
from wfcore.model.event import Event
from wfcore.time import EpochMs
from wfcore.usecases.executions.executions import read_logs
from wfcore.wire.events import LogView, log_view

LINES, LONGEST = 200, 2_000
"""The most events with output lines on a page, and the most characters of a line."""
STREAMS = ("stdout", "stderr")
_CAUSE = 6
"""The fewest characters of a line that may be the cause of an error."""


@frozen
class LogLine:
    """
    A line that a step wrote. `pieces`: the text in parts, each with a class for its colour. `cut`:
    the number of characters that were cut off. `begins`: whether an attempt after the first begins
    here. `hit`: whether the line is a part of the step's error.
    """

    at: EpochMs
    step: str
    attempt: int
    stream: str
    pieces: Sequence[tuple[str, str]]
    cut: int
    begins: bool
    hit: bool


@frozen
class Log:
    """
    The lines of a page. `after`: the number after which further lines come, or None. `last`: the
    number of the last line. `sought`: the text that all lines contain. `stream`: the only stream.
    `step`: the key of the only step.
    """

    lines: Sequence[LogLine]
    after: int | None
    last: int
    sought: str
    stream: str | None
    step: str | None


async def log_of(request: Request, execution_id: str, step: str | None, error: str | None) -> Log:
    """The lines that the address asks for. *step*: the key of the only step. *error*: its error."""
    after = number_in(request.query("lines"))
    sought = (request.query("find") or "").strip()
    stream = request.query("stream") if request.query("stream") in STREAMS else None
    services, who = request.services, request.who
    _, found, last = await read_logs(
        services, who, execution_id, after, step, LINES, stream=stream, search=sought
    )
    lines, more = _lines(found, error or "")
    filled = len(found) >= LINES or bool((sought or stream) and found)
    return Log(lines, more or (last if filled else None), more or last, sought, stream, step)


def _lines(found: Sequence[Event], error: str) -> tuple[Sequence[LogLine], int | None]:
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
            lines.append(_line(view, text, begins, error))
            room -= min(len(text), LONGEST)
            begins = False
    return lines, None


def _line(view: LogView, text: str, begins: bool, error: str) -> LogLine:
    bare = _SGR.sub("", text).strip()
    hit = len(bare) >= _CAUSE and bare in error
    pieces, cut = list(coloured(text[:LONGEST])), max(len(text) - LONGEST, 0)
    at = EpochMs(view.at)
    return LogLine(at, view.step, view.attempt, view.stream, pieces, cut, begins, hit)


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
