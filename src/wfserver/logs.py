"""
Logging: structured lines on stderr, with everything secret taken out by name.

The code that logs uses the standard library's `logging`, as any application around it may; how
lines look is decided here. What draws them is loaded with the first one: most starts write none.
"""

import logging
import sys
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any

from wfcore.errors import InvalidInput

OWN = "wfcore"
"""The logger above all of ours."""

_COUNTS = frozenset({"input_tokens", "output_tokens"})
"""Names that speak of other tokens than those of `_SECRET`."""
_SECRET = ("authorization", "api_key", "apikey", "password", "secret", "token", "cookie")


def set_up(level: str = "info", form: str | None = None) -> None:
    """
    *form* `text` or `json`; else console lines on a terminal, JSON lines elsewhere.

    Ours from *level* on; of libraries what is at least a warning. Raises `InvalidInput`.
    """
    if form not in (None, "", "text", "json"):
        raise InvalidInput("WFCORE_LOG_FORMAT", f"must be text or json, not {form!r}")
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_Lines(sys.stderr, form))
        root.setLevel(logging.WARNING)
    own = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    logging.getLogger(OWN).setLevel(own)


class _Lines(logging.StreamHandler[Any]):
    """Writes lines that structlog draws."""

    def __init__(self, stream: Any, form: str | None) -> None:
        super().__init__(stream)
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        if self.formatter is None:
            as_text = self._form == "text" if self._form else self.stream.isatty()
            self.setFormatter(_structured(as_text, self.stream.isatty()))
        return super().format(record)


def _structured(as_text: bool, colours: bool) -> logging.Formatter:
    import structlog

    draw: Any = (
        structlog.dev.ConsoleRenderer(colors=colours)
        if as_text
        else structlog.processors.JSONRenderer()
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact,
            draw,
        ],
    )


def redact(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Values under names that speak of secrets never reach a sink."""
    for name in event:
        if _is_secret(name):
            event[name] = "***"
    return event


@lru_cache
def _is_secret(name: str) -> bool:
    return name not in _COUNTS and any(word in name.lower() for word in _SECRET)
