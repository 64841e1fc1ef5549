"""
Canonical JSON and its hash.

Canonical JSON has sorted keys, no blanks, and escapes for all characters beyond ASCII, so that
every JSON library can write it.
"""

import hashlib
import json

from wfcore.model.json import Json


def canonical(value: Json) -> str:
    """The canonical JSON text of *value*."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """The SHA-256 of *text* in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
