"""The client's shapes beside the server's: made from them, and as tolerant as they must be."""

import json
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from adapters_http.body import dump_json
from adapters_http.openapi_examples import CALLBACK, VIEWS
from wfcore.wire.converter import plain
from wfcore_client import shapes
from wfcore_client.answers import check, read, shaped
from wfcore_client.calls import start
from wfcore_client.errors import NotFound, RateLimited, ServerTrouble
from wfcore_client.shapes import ExecutionStatus, StartView

ROOT = Path(__file__).parents[2]
SHARED = [view for view in VIEWS.values() if hasattr(shapes, type(view).__name__)]


@pytest.mark.parametrize("view", SHARED, ids=lambda view: type(view).__name__)
def test_every_view_is_read(view: object) -> None:
    """Whatever the server writes, the client reads, field for field, nested ones included."""
    text = json.loads(dump_json(plain(view)))
    found = shaped(getattr(shapes, type(view).__name__), text)
    assert same(found, view)


def same(found: object, view: object) -> bool:
    if attrs.has(type(view)):
        names = [one.name for one in attrs.fields(type(view))]
        return all(same(getattr(found, name), getattr(view, name)) for name in names)
    if isinstance(view, dict):
        return all(same(found[key], value) for key, value in view.items())  # type: ignore[index]
    if isinstance(view, list):
        pairs = zip(found, view, strict=True)  # type: ignore[call-overload]
        return all(same(one, other) for one, other in pairs)
    return bool(found == view)


def test_a_newer_server_is_understood() -> None:
    """A field that is not known yet is ignored, and a constant is kept as it came."""
    text = {"executionId": "e", "status": "DREAMING", "workflowId": "w", "startedAt": 1, "new": 2}
    view = shaped(StartView, text)
    assert view.status == "DREAMING"
    assert isinstance(view.status, ExecutionStatus)
    assert view.status not in shapes.FINAL_STATUSES
    assert shaped(StartView, text | {"status": "FAILED"}).status is ExecutionStatus.FAILED


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'"x"', b"<html>", b'{"executionId": 5}'])
def test_another_shape_is_trouble_of_the_server(content: bytes) -> None:
    """A response that is not the shape is an error of its own, not a crash of the client."""
    with pytest.raises(ServerTrouble, match="another shape"):
        read(start("w"), 202, {}, content)


def test_errors_say_what_the_server_said() -> None:
    """An error carries the words, how long to wait and how the log names the request."""
    headers = {"retry-after": "7", "x-request-id": "req_1"}
    with pytest.raises(RateLimited) as raised:
        check(429, headers, b'{"error": "full"}')
    assert (raised.value.error, raised.value.retry_after_s) == ("full", 7)
    assert raised.value.request_id == "req_1"
    with pytest.raises(ServerTrouble) as trouble:
        check(503, headers, b"<html>")
    assert trouble.value.retry_after_s == 7
    with pytest.raises(NotFound, match="404: gone"):
        check(404, {"retry-after": "soon"}, b'{"error": "gone"}')


def test_the_example_of_a_callback_is_one() -> None:
    """What OpenAPI shows of a callback is what the client reads."""
    assert shaped(shapes.CallbackView, CALLBACK).data.status is ExecutionStatus.COMPLETED


def test_what_is_made_is_current() -> None:
    """`shapes`, `backoff` and `synchronous` are what `make client` makes now."""
    words = [sys.executable, ROOT / "client" / "generate.py", "--check"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert (run.stdout, run.returncode) == ("", 0), run.stderr
