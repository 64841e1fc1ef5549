"""A provider that fails, in every way there is: a clear error, nothing followed, nothing shown."""

import asyncio
import time

import pytest

from adapters_runtime.ai.failures import retry_after, shows
from adapters_runtime.ai.models import MOST_BYTES, WireModels
from adapters_runtime.ai.providers import providers_from
from adapters_runtime.pinned_http import HttpReply
from tests.support.model_server import (
    KEY,
    ModelServer,
    Turn,
    a_model_server,
    cuts,
    floods,
    refuses,
    says,
    sends,
)
from wfcore.ports.models import AnswerLost, ModelBusy, ModelFailed, ModelRefused, ModelRequest

from .conftest import BOTH

pytestmark = pytest.mark.parametrize("model", BOTH)


async def failure(models: WireModels, model: str) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await models.ask(ModelRequest(model, "Say it"))
    return caught.value


REFUSALS = [
    (401, ModelRefused, "refused the key (401); check"),
    (403, ModelRefused, "refused the key (403); check"),
    (404, ModelRefused, "knows no model some-model (404): no such"),
    (400, ModelRefused, "answered 400: no such"),
    (413, ModelRefused, "answered 413: no such"),
    (408, ModelBusy, "answered 408: no such"),
    (429, ModelBusy, "answered 429: no such"),
    (500, ModelBusy, "answered 500: no such"),
    (502, ModelBusy, "answered 502: no such"),
    (503, ModelBusy, "answered 503: no such"),
    (529, ModelBusy, "answered 529: no such"),
    (504, AnswerLost, "gave up waiting (504)"),
    (524, AnswerLost, "gave up waiting (524)"),
    (204, ModelRefused, "answered 204"),
]


@pytest.mark.parametrize(("status", "kind", "says"), REFUSALS)
async def test_a_refusal_says_what_it_means(
    models: WireModels,
    server: ModelServer,
    model: str,
    status: int,
    kind: type[ModelFailed],
    says: str,
) -> None:
    """Each status is told in words, and asked again only where nothing was done. AI-3."""
    server.will(refuses(status, "no such"))
    found = await failure(models, model)
    assert type(found) is kind
    assert says in str(found)
    assert len(server.asked) == 1


BROKEN: list[tuple[Turn, str]] = [
    (cuts, "broke: peer closed connection"),
    (sends(b"<html>", "text/html"), "answered text/html instead of JSON"),
    (sends(b"{}", ""), "answered nothing instead of JSON"),
    (sends(b'{"a":'), "answered invalid JSON"),
    (sends(b"\xff\xfe"), "answered invalid JSON"),
    (sends(b"[" * 100 + b"]" * 100), "answered invalid JSON: nested deeper"),
    (sends(b"[]"), "holds no"),
    (
        sends(b'{"error": {"message": "Overloaded upstream", "code": 502}}'),
        "answered 200 with an error: Overloaded upstream",
    ),
    (sends(b'{"error": "no credit"}'), "answered 200 with an error: no credit"),
    (sends(b'{"choices": [], "content": 3}'), "holds no"),
    (sends(b"{}", **{"Content-Encoding": "gzip"}), "compressed"),
    (says("x", (-1, 3)), "cannot be true: -1"),
    (says("x", (12, 10**15)), "cannot be true: 1000000000000000"),
    (says("x", (12, 1e300)), "no whole number"),
    (says("x", (True, 3)), "no whole number"),
    (says("x", ("12", 3)), "no whole number"),
    (says("x", (12, None)), "does not say how many tokens"),
    (says("x" * 1_048_577), "over 1,048,576 characters"),
]


@pytest.mark.parametrize(("turn", "says"), BROKEN)
async def test_an_unusable_answer_is_lost(
    models: WireModels, server: ModelServer, model: str, turn: Turn, says: str
) -> None:
    """What cannot be the answer is none, with the reason, and is not asked for again. AI-5."""
    server.will(turn)
    found = await failure(models, model)
    assert type(found) is AnswerLost
    assert says in str(found)
    assert len(server.asked) == 1


async def test_a_flood_is_cut_off(models: WireModels, server: ModelServer, model: str) -> None:
    """Of 100 MB no more than 10 are read: the connection is closed at the limit. AI-5."""
    server.will(floods(100 << 20))
    assert "over 10 MB" in str(await failure(models, model))
    deadline = time.monotonic() + 20
    while server.connected:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert server.lines[0].flooded < 4 * MOST_BYTES


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(
    models: WireModels, server: ModelServer, model: str, status: int
) -> None:
    """Where a provider points to another host, that host is never called. AI-5, AI-6."""
    with a_model_server() as other:
        server.will(refuses(status, headers={"Location": f"{other.url}/v1/chat/completions"}))
        found = await failure(models, model)
        assert f"redirects ({status}), which is not followed" in str(found)
        assert isinstance(found, ModelRefused)
        assert other.asked == []


async def test_a_key_is_never_shown(models: WireModels, server: ModelServer, model: str) -> None:
    """Whatever a provider says of the key, no error and no answer repeats it. AI-6, SC-4."""
    for status in (400, 401, 404, 429, 500, 504):
        for said in (f"bad key {KEY}", f"bad key {KEY[:12]}***", f"Bearer {KEY}!"):
            server.will(refuses(status, said))
            found = await failure(models, model)
            assert KEY[:8] not in f"{found} {found!r}"
    server.will(says(f"your key is {KEY}, I think"))
    answer = await models.ask(ModelRequest(model, "What is my key?"))
    assert answer.text == "your key is ***, I think"


async def test_the_words_of_a_provider_are_tamed(
    models: WireModels, server: ModelServer, model: str
) -> None:
    """A message of any length and alphabet becomes one short line."""
    server.will(refuses(400, "a\x00b\n\n\tc\x1b[31m" + "x" * 10_000))
    said = str(await failure(models, model))
    assert "a b c [31mxxx" in said
    assert len(said) < 700


async def test_used_up_quota_is_not_asked_again(
    models: WireModels, server: ModelServer, model: str
) -> None:
    """A 429 that waiting does not cure is a refusal. AI-3."""
    server.will(refuses(429, "You exceeded your current quota (insufficient_quota)"))
    assert isinstance(await failure(models, model), ModelRefused)


async def test_nobody_there(model: str) -> None:
    """A provider that cannot be reached did nothing: its address is told. AI-3."""
    with a_model_server() as gone:
        url = gone.url
    env = {"WFCORE_AI_LOCAL_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url}
    found = await failure(WireModels(providers_from(env)), model)
    assert isinstance(found, ModelBusy)
    assert url.removeprefix("http://") in str(found)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("1e9", None),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
    ],
)
def test_when_to_come_back(model: str, text: str, seconds: float | None) -> None:
    """`Retry-After` is a number of seconds or a date; what is neither says nothing. AI-3."""
    assert retry_after(HttpReply(429, {"retry-after": text}, b"")) == seconds


def test_pieces_of_a_key_show_it(model: str) -> None:
    """Eight characters of a key in a row are too many; what local servers call a key is none."""
    assert shows(KEY, f"...{KEY[5:13]}...")
    assert not shows(KEY, f"{KEY[:4]} {KEY[-4:]}")
    assert not shows("ollama", "ollama knows no such model")
