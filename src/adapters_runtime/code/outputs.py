"""
The output of a step that ended well, and the error of a step that failed.

The output is the JSON in `WF_OUTPUT`. Without such a file the output is stdout: parsed if all of
stdout is one JSON value, otherwise as text without the last newline. JSON is strict: no NaN, at
most 64 levels.
"""

import codecs
import signal
from typing import TYPE_CHECKING, Any

import orjson
from attrs import evolve

from adapters_runtime.sandbox import frames
from adapters_runtime.sandbox.shortage import describe, is_temporary
from wfcore.errors import InvalidInput
from wfcore.model.json import Json, JsonObject
from wfcore.ports.runtime import StepEnd
from wfcore.rules.numbers import kept

if TYPE_CHECKING:
    from adapters_runtime.sandbox.client import Ended

MOST_LEVELS = 64
_SHOWN_OF_STDERR = 2_000


class UnusableOutput(Exception):
    """
    Raised when the file at `WF_OUTPUT` or `WF_STATE` cannot be used; the message tells the author
    why.
    """


def fault_of(ended: "Ended", timeout_s: float, stdout_bytes: int) -> StepEnd | None:
    """The end of an attempt whose process failed, or None if the attempt ended well. CS-6."""
    if ended.lost:
        return StepEnd(error="the process that watched over the step was killed")
    if ended.failure and ended.unready:
        lasting = ended.unconfined and not is_temporary(ended.errno)
        return StepEnd(postponed=describe(ended.errno, ended.failure), lasting=lasting)
    if ended.failure:
        return StepEnd(error=f"could not be started: {ended.failure}", permanent=True)
    match ended.reason:
        case frames.TIMED_OUT:
            error = f"ran into its timeout of {timeout_s:g} s"
            return StepEnd(error=_with_stderr(error, ended), timed_out=True)
        case frames.TOO_MUCH_OUTPUT:
            error = f"wrote more than {stdout_bytes:,} bytes to stdout"
            return StepEnd(error=f"{error}; use WF_OUTPUT or WF_ARTIFACTS", permanent=True)
        case frames.TOO_MUCH_MEMORY:
            return StepEnd(error=_with_stderr("took more memory than a step may", ended))
        case frames.KILLED:
            return StepEnd(error="was ended from outside")
    return _fault_of_exit(ended)


def output_of(ended: "Ended") -> Json:
    """The output of an attempt that ended well. CS-5. Raises `UnusableOutput`."""
    if ended.output_trouble:
        raise UnusableOutput(ended.output_trouble)
    if ended.output is None:
        return _output_of_stdout(ended.stdout)
    return _parsed(ended.output, "WF_OUTPUT")


def state_of(ended: "Ended") -> JsonObject | None:
    """
    The object that an attempt wrote to `WF_STATE`; None without a file. SV-3. Raises
    `UnusableOutput`.
    """
    if ended.state is None:
        return None
    value = _parsed(ended.state, "WF_STATE")
    if not isinstance(value, dict):
        raise UnusableOutput("WF_STATE must be a JSON object of names that the workflow declares")
    return value


def _parsed(content: bytes, variable: str) -> Json:
    for mark in _MARKS:
        if content.startswith(mark):
            raise UnusableOutput(f"{variable} begins with a byte order mark; {_PLAIN}")
    if not content.strip():
        raise UnusableOutput(f"{variable} is empty; write one JSON value, or no file at all")
    try:
        return parse(content)
    except ValueError as problem:
        raise UnusableOutput(f"{variable} is not valid JSON: {problem}") from None


_MARKS = codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
_PLAIN = "write JSON as UTF-8 without one"


def counted(end: StepEnd) -> StepEnd:
    """*end* with the size of its output."""
    return end if end.output is None else evolve(end, size=len(orjson.dumps(end.output).decode()))


def lines_of(ended: "Ended") -> tuple[tuple[str, str], ...]:
    """The kept output of the attempt, by stream: all of stdout, the end of stderr. EX-28."""
    streams = ("stdout", ended.stdout), ("stderr", ended.stderr)
    return tuple((name, text.decode("utf-8", "replace")) for name, text in streams if text)


def parse(text: bytes) -> Json:
    """
    The value of strict JSON. NU-1.

    Raises `ValueError`, also for more than `MOST_LEVELS` levels or a number that cannot be stored
    exactly.
    """
    try:
        value = kept(text, orjson.loads)
    except InvalidInput as refused:
        raise ValueError(str(refused)) from None
    level = _containers([value])
    for _ in range(MOST_LEVELS):
        if not level:
            return value
        level = [child for parent in level for child in _containers(parent)]
    if level:
        raise ValueError(f"nested deeper than {MOST_LEVELS} levels")
    return value


def _containers(parent: Any) -> list[Any]:
    children = parent.values() if isinstance(parent, dict) else parent
    return [child for child in children if isinstance(child, dict | list)]


def _output_of_stdout(stdout: bytes) -> Json:
    try:
        return parse(stdout)
    except ValueError:
        return stdout.decode("utf-8", "replace").removesuffix("\n")


def _fault_of_exit(ended: "Ended") -> StepEnd | None:
    match ended.exit:
        case 0:
            return None
        case None:
            how = "ended in an unknown way"
        case code if code < 0:
            how = f"was ended by {_signal_name(-code)}"
        case code:
            how = f"exited with status {code}"
    return StepEnd(error=_with_stderr(how, ended))


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
    return f"{name} (as happens when memory runs out)" if number == signal.SIGKILL else name


def _with_stderr(error: str, ended: "Ended") -> str:
    text = ended.stderr.decode("utf-8", "replace").strip()
    if len(text) > _SHOWN_OF_STDERR:
        text = "…" + text[-_SHOWN_OF_STDERR:]
    return f"{error}: {text}" if text else error
