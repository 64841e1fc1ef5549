"""The real application on a real socket, under everything a hostile client may send."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from attrs import define, field
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters_http.app import create_app
from adapters_runtime.engine.wakeups import Wakeups
from adapters_store.memory import MemoryCounters, MemoryStore
from wfcore.model.access import Scope, Tier
from wfcore.testing.fakes import (
    CountingIds,
    CountingTokens,
    ManualClock,
    PathTemplates,
    PlainPasswords,
)
from wfcore.usecases.accounts.accounts import create_account
from wfcore.usecases.accounts.keys import create_key
from wfcore.usecases.services import Services

from .serving import Running, everything, one_answer, serving, until

MIB = 1024 * 1024
START = b"POST /api/v1/workflows/wf_none/executions HTTP/1.1\r\n"
DECIDE = b"POST /api/webhook-trigger/approval HTTP/1.1\r\n"


@define
class World:
    """The application and a key for it; both are made in the server's own loop, at its start."""

    key: str = ""
    app: Any = field(default=None, repr=False)

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            await self._open()
        await self.app(scope, receive, send)

    async def _open(self) -> None:
        clock = ManualClock()
        services = Services(
            store=MemoryStore(now=clock.service_now),
            counters=MemoryCounters(),
            files=None,  # type: ignore[arg-type]
            clock=clock,
            ids=CountingIds(),
            tokens=CountingTokens(),
            passwords=PlainPasswords(),
            templates=PathTemplates(),
            wakeup=Wakeups(),
            signing_key=b"k" * 32,
        )
        owner = await create_account(services, "ann@example.org", Tier.ENTERPRISE)
        self.key = (await create_key(services, owner.id, "all", Scope.ordinary())).text
        self.app = create_app(services)


@define
class Web:
    """The running server, and the head of a request by somebody with a key."""

    running: Running
    key: str

    def head(self, line: bytes, *fields: bytes) -> bytes:
        own = (b"Host: x", b"Authorization: Bearer " + self.key.encode())
        return line + b"\r\n".join([*own, *fields]) + b"\r\n\r\n"

    def ask(self, line: bytes, *fields: bytes, body: bytes = b"") -> tuple[int, Any]:
        """Status and JSON of one answer, on a connection of its own."""
        with self.running.connect() as client:
            client.sendall(self.head(line, *fields) + body)
            return parsed(one_answer(client))

    def still_works(self) -> None:
        """A normal request is answered as ever."""
        status, body = self.ask(b"GET /api/v1/workflows HTTP/1.1\r\n")
        assert (status, body["items"]) == (200, [])


def parsed(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    world = World()
    with serving(world) as running:
        yield Web(running, world.key)


def length(size: int) -> bytes:
    return b"Content-Length: %d" % size


@pytest.mark.parametrize(("line", "limit"), [(START, MIB), (DECIDE, 64 * 1024)])
def test_a_body_over_its_limit_is_413_without_being_sent(web, line, limit):
    """The size alone is enough to refuse; nobody waits for the body."""
    assert web.ask(line, length(limit + 1)) == (
        413,
        {"error": f"Request body is over its limit of {limit} bytes"},
    )


@pytest.mark.parametrize(("line", "limit"), [(START, MIB), (DECIDE, 64 * 1024)])
def test_a_chunked_body_over_its_limit_is_413_without_its_end(web, line, limit):
    """Without a length the bytes are counted; the end of the body is not waited for."""
    chunk = b"%x\r\n" % (limit + 1) + b" " * (limit + 1)
    status, _ = web.ask(line, b"Transfer-Encoding: chunked", body=chunk)
    assert status == 413


@pytest.mark.parametrize(("line", "limit", "status"), [(START, MIB, 404), (DECIDE, 65_536, 400)])
def test_a_body_of_exactly_the_limit_is_read(web, line, limit, status):
    """The last byte that is allowed is allowed: the answer is about the content."""
    assert web.ask(line, length(limit), body=b"{}" + b" " * (limit - 2))[0] == status


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 10_000,
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b'{"inputs":{"a":NaN}}',
        b'{"inputs":{"a":1e999}}',
        b'{"inputs":"\\ud800"}',
        b'{"inputs":"\xff"}',
        b"{} {}",
        '{"a":1}'.encode("utf-16"),
        b"\x1f\x8b\x08\x00",
        b"[]",
        b"null",
    ],
)
@pytest.mark.parametrize("line", [START, DECIDE])
def test_a_body_that_is_no_strict_json_object_is_400(web, line, body):
    """Whatever is wrong with the JSON, it is the client's error, and said so."""
    status, answer = web.ask(line, length(len(body)), body=body)
    assert status == 400
    assert list(answer) == ["error"]


def test_a_compressed_body_is_400(web):
    """A compressed body is refused, not inflated."""
    assert web.ask(START, b"Content-Encoding: gzip", length(2), body=b"{}")[0] == 400


def test_half_a_body_is_408_and_over(web):
    """A client that stops in the middle gets an error and loses its connection."""
    with web.running.connect() as client:
        client.sendall(web.head(START, length(10)) + b"{")
        status, answer = parsed(everything(client))
    assert (status, list(answer)) == (408, ["error"])
    web.still_works()


@pytest.mark.parametrize("size", [0, 1, 5_000])
def test_a_client_that_leaves_harms_nobody(web, size):
    """A hang-up in the middle of a body ends that request only."""
    for _ in range(20):
        with web.running.connect() as client:
            client.sendall(web.head(START, length(10_000)) + b" " * size)
    web.still_works()
    until(lambda: not web.running.server.server_state.tasks)


def test_hundreds_of_half_requests_leave_the_others_alone(web):
    """While many sit on half a head or half a body, everybody else is served."""
    with ExitStack() as stack:
        for n in range(200):
            client = stack.enter_context(web.running.connect())
            client.sendall(b"GET /api" if n % 2 else web.head(START, length(9)) + b"{")
        for _ in range(10):
            web.still_works()


def test_a_request_inside_of_another_is_not_heard(web):
    """What might be one request or two is refused, and the second one is not answered."""
    inner = web.head(b"GET /api/v1/workflows HTTP/1.1\r\n")
    head = web.head(START, length(5), b"Transfer-Encoding: chunked")
    with web.running.connect() as client:
        client.sendall(head + b"0\r\n\r\n" + inner)
        answer = everything(client)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


TARGETS = st.sampled_from(
    [b"/api/v1/workflows", b"/api/webhooks/x/trigger", b"/api/webhook-trigger/approval/a/approve"]
)
ODD = st.sampled_from(
    [
        *(b"%00", b"%", b"%ff%fe", b"%c0%af", b"%2e%2e/", b"//", b"/../..", b"?", b"&=&", b"{id}"),
        *(b"?page=" + b"9" * 5_000, b"?api_key=%00", b"?comment=%f0%9f", b"?confirm=1"),
        b"a" * 2_000,
    ]
)
METHODS = st.sampled_from([b"GET", b"POST", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"TRACE"])
FIELDS = st.sampled_from(
    [
        b"Authorization: Bearer \xff\xfe",
        b"Authorization: Basic eDp5",
        b"X-API-Key: " + b"k" * 3_000,
        b"X-API-Key: wfk_a_b",
        b"Idempotency-Key: \xe4",
        b"X-Request-Id: \xff",
        b"Cookie: a=\xff; ;;=",
        b"Content-Type: \x80",
        b"Range: bytes=-",
        b"X-Webhook-Signature: sha256=zz",
        b"Origin: null",
        b"Expect: nothing",
        b"Host:",
        b"Connection: upgrade, http2-settings",
        b"Content-Length: 0",
    ]
)


@settings(max_examples=150)
@given(
    method=METHODS,
    target=TARGETS,
    odd=st.lists(ODD, max_size=3),
    fields=st.lists(FIELDS, max_size=4),
    known=st.booleans(),
)
@example(method=b"GET", target=b"/", odd=[b"%00"], fields=[], known=True)
def test_odd_requests_are_never_the_servers_fault(web, method, target, odd, fields, known):
    """Odd methods, targets and fields are the client's error, in the usual shape; never a 500."""
    line = method + b" " + target + b"".join(odd) + b" HTTP/1.1\r\n"
    fields = [*fields, b"Connection: close"]
    head = web.head(line, *fields) if known else line + b"\r\n".join([*fields, b"", b""])
    status, shape, body = answered(web.running.ask(head))
    assert status < 500, head
    if status >= 400 and method != b"HEAD" and shape == b"application/json":
        assert list(json.loads(body)) == ["error"]


def answered(answer: bytes) -> tuple[int, bytes, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    kinds = [one[14:] for one in head.lower().split(b"\r\n") if one.startswith(b"content-type: ")]
    return int(head.split()[1]), kinds[0] if kinds else b"", body


@settings(max_examples=100)
@given(noise=st.binary(max_size=300), cut=st.integers(0, 120))
def test_noise_is_answered_or_cut_off(web, noise, cut):
    """Any bytes, alone or inside of a good request, end in an error or a closed connection."""
    good = web.head(START, b"Connection: close", length(2)) + b"{}"
    with web.running.connect() as client:
        with suppress(ConnectionError):
            client.sendall(good[:cut] + noise + good[cut:] + b"\r\n\r\n" + good)
        for answer in everything(client).split(b"HTTP/1.1 ")[1:]:
            assert int(answer[:3]) < 500


def test_after_all_this_the_server_still_works(web):
    """Nothing above has left a task or a connection behind."""
    until(lambda: not web.running.connections())
    assert not web.running.server.server_state.tasks
    web.still_works()
