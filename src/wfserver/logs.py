"""
Logging: structured lines on stderr, without the values of names that speak of secrets.

All code logs with the standard library's `logging`, as an application around it may. This module
alone decides on the form of lines.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

from wfcore.errors import InvalidInput

OWN = "wfcore"
"""The root of wfcore's loggers."""

_COUNTS = frozenset({"input_tokens", "output_tokens"})
"""Names with `token` that count tokens and hide no secret."""
_SECRET = ("authorization", "api_key", "apikey", "password", "secret", "token", "cookie")


def set_up(level: str = "info", form: str | None = None) -> None:
    """
    Set up logging: wfcore's records from *level* on, and warnings of libraries.

    *form*: `text` or `json`; None: text on a terminal, JSON elsewhere. Raises `InvalidInput`.
    """
    if form not in (None, "", "text", "json"):
        raise InvalidInput("WFCORE_LOG_FORMAT", f"must be text or json, not {form!r}")
    root = logging.getLogger()
    if not root.handlers:
        terminal = sys.stderr.isatty()
        lines = logging.StreamHandler(sys.stderr)
        lines.setFormatter(_Lines(form == "text" if form else terminal, terminal))
        root.addHandler(lines)
        root.setLevel(logging.WARNING)
    own = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    logging.getLogger(OWN).setLevel(own)


class _Lines(logging.Formatter):
    """
    One line for each record: message, level, extra fields, time in UTC, traceback. The line is a
    JSON document, or text whose level has a colour if *colours* is set.
    """

    def __init__(self, as_text: bool, colours: bool) -> None:
        super().__init__()
        self._as_text = as_text
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        beside, level = redact(extra), record.levelname.lower()
        event, when = record.getMessage(), datetime.fromtimestamp(record.created, UTC)
        at = when.isoformat(timespec="microseconds").replace("+00:00", "Z")
        failed = self.formatException(record.exc_info) if record.exc_info else ""
        if not self._as_text:
            line = {"event": event, "level": level, **beside, "timestamp": at}
            if failed:
                line["exception"] = failed
            return json.dumps(line, default=repr)
        word = f"{level:<8}"
        if self._colours:
            word = f"\x1b[{_COLOURS.get(level, 32)}m{word}\x1b[0m"
        pairs = " ".join(f"{name}={_word(value)}" for name, value in beside.items())
        line_of = f"{at} [{word}] {event:<30} {pairs}".rstrip()
        return f"{line_of}\n{failed}" if failed else line_of


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes that every record has."""
_COLOURS = {"warning": 33, "error": 31, "critical": 31}
"""Colours of levels, as ANSI numbers; other levels are green."""


def _word(value: object) -> str:
    """*value* as one word, in quotes if it is empty or has blanks or control characters."""
    text = str(value)
    plain = text.isprintable() and text and not set(text) & set(" \"'=")
    return text if plain or not isinstance(value, str) else repr(text)


def redact(fields: Mapping[str, object]) -> Mapping[str, object]:
    """*fields* with `***` for every value whose name speaks of a secret."""
    return {name: "***" if _is_secret(name) else value for name, value in fields.items()}


@lru_cache
def _is_secret(name: str) -> bool:
    return name not in _COUNTS and any(word in name.lower() for word in _SECRET)
