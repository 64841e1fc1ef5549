"""What is logged, and how it looks where it is no terminal."""

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from wfcore.errors import InvalidInput
from wfserver import logs

from .conftest import environment


def lines(*said: str, level: str = "info") -> list[dict[str, Any]]:
    """What comes of the statements *said* on stderr, in a process that has set up its logs."""
    return [json.loads(line) for line in text(*said, level=level).splitlines()]


def text(*said: str, level: str = "info", form: str | None = None) -> str:
    """The same as it is written."""
    code = f"import logging, sys\nfrom wfserver import logs\nlogs.set_up({level!r}, {form!r})\n"
    ended = subprocess.run(
        [sys.executable, "-c", code + "\n".join(said)],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def test_lines_for_people_can_be_had_without_a_terminal() -> None:
    """`text` says the same without being a document, and without colours."""
    said = text('logging.getLogger("wfcore.x").warning("it broke", extra={"at": 7})', form="text")
    assert "it broke" in said
    assert "at=7" in said
    assert "{" not in said
    assert "\x1b" not in said


def test_a_form_that_nobody_knows_is_refused() -> None:
    """The error names the setting and what it may be."""
    with pytest.raises(InvalidInput, match=r"WFCORE_LOG_FORMAT.*text or json"):
        logs.set_up("info", "xml")


def test_counts_of_tokens_are_no_secrets() -> None:
    """What a model consumed is shown, although the word is that of a credential."""
    (line,) = lines('logging.getLogger("wfcore.x").warning("w", extra={"input_tokens": 7})')
    assert line["input_tokens"] == 7


def test_a_line_is_a_json_document() -> None:
    """It carries the words, the level, the time and what was said beside the words."""
    said = 'logging.getLogger("wfcore.http").error("it broke", extra={"at": ["a:1", "b:2"]})'
    (line,) = lines(said)
    assert (line["event"], line["level"], line["at"]) == ("it broke", "error", ["a:1", "b:2"])
    assert line["timestamp"].endswith("Z")


@pytest.mark.parametrize("name", ["api_key", "Authorization", "callbackSecret", "cookies"])
def test_what_speaks_of_secrets_is_masked(name: str) -> None:
    """A value under such a name is never written. SC-4."""
    (line,) = lines(f'logging.getLogger("wfcore.x").warning("w", extra={{{name!r}: "s3cret"}})')
    assert line[name] == "***"


def test_an_exception_is_part_of_its_line() -> None:
    """A traceback does not spread over lines of its own."""
    (line,) = lines(
        "try: [][1]", "except IndexError: logging.getLogger('wfcore.x').exception('failed')"
    )
    assert line["event"] == "failed"
    assert "IndexError: list index out of range" in line["exception"]


def test_ours_are_written_from_the_level_that_is_asked_for() -> None:
    """Libraries are heard when they warn, whatever the level."""
    said = [
        f'logging.getLogger({name!r}).log(logging.{level}, "{name} {level}")'
        for name in ("wfcore.x", "httpx")
        for level in ("DEBUG", "INFO", "WARNING", "ERROR")
    ]
    heard = {
        level: {line["event"] for line in lines(*said, level=level)} for level in ("debug", "error")
    }
    libraries = {"httpx WARNING", "httpx ERROR"}
    ours = {"wfcore.x DEBUG", "wfcore.x INFO", "wfcore.x WARNING", "wfcore.x ERROR"}
    assert heard == {"debug": ours | libraries, "error": {"wfcore.x ERROR"} | libraries}


def test_a_line_needs_no_library() -> None:
    """The first line of a server takes no time, and no memory, for what draws on terminals."""
    said = 'logging.getLogger("wfcore.x").warning("w")', "assert 'rich' not in sys.modules"
    for form in ("text", "json"):
        assert "w" in text(*said, form=form)


def test_a_level_has_a_colour_on_a_terminal() -> None:
    """There a failure is seen among lines that all look alike."""
    record = logging.makeLogRecord({"msg": "it broke", "levelname": "ERROR", "at": "a b"})
    line = logs._Lines(as_text=True, colours=True).format(record)
    assert "\x1b[31merror" in line
    assert line.endswith("at='a b'")


def test_a_text_cannot_begin_another_line() -> None:
    """What a caller wrote stays within its value."""
    said = text('logging.getLogger("wfcore.x").warning("w", extra={"at": "a\\nb"})', form="text")
    assert len(said.splitlines()) == 1
