"""
The source of this installation, for messages that explain how to add an extra.

The name of the project is not registered with any index: a command with the name alone would
install a stranger's package of that name.
"""

import json
import os
import sys
from functools import cache
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit

_NOTE = "wfcore-*.dist-info/direct_url.json"
"""By pip, about what it installed. `importlib.metadata` reads it too, and costs a start 10 ms."""


def install(extra: str) -> str:
    """The command that adds *extra* to this installation, from where it came."""
    return f"pip install {quote(f'{_source()}[{extra}]')}"


@cache
def _source() -> str:
    """The folder or wheel that pip installed; a word for it where that is gone or unknown."""
    found = (one for folder in sys.path for one in Path(folder).glob(_NOTE))
    try:
        noted = json.loads(next(found).read_text())
    except (StopIteration, OSError, ValueError):
        noted = {}
    parts = urlsplit(noted.get("url", ""))
    path = unquote(parts.path) if parts.scheme == "file" else ""
    return path if path and os.path.exists(path) else "path/to/wfcore"
