"""Logging: structured lines on stderr, with everything secret taken out by name."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET = ("authorization", "api_key", "apikey", "password", "secret", "token", "cookie")


def set_up(level: str = "info") -> None:
    """Console lines on a terminal, JSON lines elsewhere; *level* and above."""
    on_terminal = sys.stderr.isatty()
    renderer: Any = (
        structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")


def redact(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Values under names that speak of secrets never reach a sink."""
    for name in event:
        if any(word in name.lower() for word in _SECRET):
            event[name] = "***"
    return event
