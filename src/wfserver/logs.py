"""
Logging: structured lines on stderr, with everything secret taken out by name.

The code that logs uses the standard library's `logging`, as any application around it may; how
lines look is decided here. What draws them is loaded with the first one: most starts write none.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

OWN = "wfcore"
"""The logger above all of ours."""

_SECRET = ("authorization", "api_key", "apikey", "password", "secret", "token", "cookie")


def set_up(level: str = "info") -> None:
    """
    Console lines on a terminal, JSON lines elsewhere.

    Ours from *level* on; of libraries what is at least a warning.
    """
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_Lines(sys.stderr))
        root.setLevel(logging.WARNING)
    own = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    logging.getLogger(OWN).setLevel(own)


class _Lines(logging.StreamHandler[Any]):
    """Writes lines that structlog draws."""

    def format(self, record: logging.LogRecord) -> str:
        if self.formatter is None:
            self.setFormatter(_structured(self.stream.isatty()))
        return super().format(record)


def _structured(on_terminal: bool) -> logging.Formatter:
    import structlog

    draw: Any = (
        structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
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
        if any(word in name.lower() for word in _SECRET):
            event[name] = "***"
    return event
