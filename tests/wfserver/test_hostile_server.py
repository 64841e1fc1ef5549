"""A server elsewhere says what it likes: the terminal obeys none of it."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from .conftest import Call

BAD = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
CONTROLS = {"\x1b", "\x07", "\x9b", "\u202e"}


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dict[str, Any]]]:
    """A server that answers with `status` and `answer`, whatever it is asked."""
    says: dict[str, Any] = {"status": 200, "answer": {}}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(says["answer"]).encode()
            self.send_response(says["status"], BAD.encode("ascii", "ignore").decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("WFCORE_KEY", "wf_key_x")
    yield f"http://127.0.0.1:{server.server_port}", says
    server.shutdown()
    server.server_close()
    thread.join()


NAMES = "id email name text error status executionId accountId key workflowId url apiKey plan why"
EVIL: dict[str, Any] = dict.fromkeys((*NAMES.split(), "anchor", BAD), BAD)
EVIL |= {"items": [], "total": 0, "createdAt": 1, "scopes": [BAD]}


@pytest.mark.parametrize(
    "words",
    [
        ("account", "create", "ann@example.org"),
        ("key", "revoke", "x"),
        ("workflow", "delete", "x", "--yes"),
        ("execution", "cancel", "x"),
        ("audit", "anchor"),
        ("login", "ann@example.org"),
        ("signing", "rotate"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("status", [200, 409])
def test_nothing_that_it_says_reaches_the_terminal_as_a_control(
    call: Call,
    hostile: tuple[str, dict[str, Any]],
    words: tuple[str, ...],
    as_json: bool,
    status: int,
) -> None:
    """Neither in an answer nor in an error, as text nor as JSON; JSON still says the same."""
    url, says = hostile
    says.update(status=status, answer=EVIL)
    said = call("--url", url, *words, *(("--json",) if as_json else ()))
    assert not CONTROLS & set(said.out + said.err)
    if as_json and status == 200 and words[1] in ("create", "revoke", "cancel", "rotate"):
        assert BAD in json.loads(said.out).values()
