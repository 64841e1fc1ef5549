"""
Where this program was installed from, for what says how to add an extra. Decision 258.

The name of the project is not registered with any index: a cure that named it alone would install
whatever somebody else registered under that name.
"""

import json
import os
from functools import cache
from shlex import quote
from urllib.parse import unquote, urlsplit


def install(extra: str) -> str:
    """The command that adds *extra* to this installation, from where it came."""
    return f"pip install {quote(f'{_source()}[{extra}]')}"


@cache
def _source() -> str:
    """The folder or wheel that pip installed; a word for it where that is gone or unknown."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to load, and for few

    try:
        noted = json.loads(distribution("wfcore").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        noted = {}
    parts = urlsplit(noted.get("url", ""))
    path = unquote(parts.path) if parts.scheme == "file" else ""
    return path if path and os.path.exists(path) else "path/to/wfcore"
