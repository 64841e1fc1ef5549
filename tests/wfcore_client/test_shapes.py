"""The client's shapes beside the server's: made from them, and as tolerant as they must be."""

import dataclasses

import pytest

from adapters_http.openapi.examples import examples
from wfcore.wire.converter import wire_name
from wfcore_client import shapes
from wfcore_client.answers import check, read, shaped
from wfcore_client.calls import start
from wfcore_client.errors import NotFound, RateLimited, ServerTrouble
from wfcore_client.shapes import ExecutionStatus, StartView

SHARED = {name: text for name, text in examples()["views"].items() if hasattr(shapes, name)}


@pytest.mark.parametrize("name", SHARED)
def test_every_view_is_read(name: str) -> None:
    """The client reads each field that the server writes, those of nested shapes included."""
    assert same(shaped(getattr(shapes, name), SHARED[name]), SHARED[name])


def same(found: object, text: object) -> bool:
    if dataclasses.is_dataclass(found):
        fields = {wire_name(one.name): one.name for one in dataclasses.fields(found)}
        assert isinstance(text, dict)
        assert set(text) <= set(fields)
        return all(same(getattr(found, fields[key]), value) for key, value in text.items())
    if isinstance(text, dict):
        return all(same(found[key], value) for key, value in text.items())  # type: ignore[index]
    if isinstance(text, list):
        pairs = zip(found, text, strict=True)  # type: ignore[call-overload]
        return all(same(one, other) for one, other in pairs)
    return bool(found == text)


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
    assert (
        shaped(shapes.CallbackView, examples()["callback"]).data.status is ExecutionStatus.COMPLETED
    )
