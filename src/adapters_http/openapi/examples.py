"""The examples of the OpenAPI document, by the name of the shape."""

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def examples() -> dict[str, Any]:
    """
    The content of `examples.json`: `views` and `bodies` by shape, a `callback`, and `texts` by
    media type. The examples tell one story: a workflow that pays refunds. They are data rather than
    views in Python, so an example that no longer fits fails a test and not the server.
    """
    text = (Path(__file__).parent / "examples.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
