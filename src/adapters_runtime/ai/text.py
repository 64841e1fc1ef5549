"""JSON text for the wire."""

import json
from typing import Any

from wfcore.model.json import Json


def json_text(value: Json) -> str:
    """Compact JSON; what is no character (a lone surrogate) becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_bytes(value: Json) -> bytes:
    """`json_text` in UTF-8."""
    return json_text(value).encode()


def _plain(value: Any) -> Any:
    """Mappings that are no dicts."""
    return dict(value)
