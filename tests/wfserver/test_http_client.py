"""What commands with --url send, and what they say of odd answers, keys and addresses."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from wfserver.terminal.http_client import Api, ServerRefused

from .conftest import Call


@pytest.fixture
def moved() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """A server that sends everybody to another one, and the keys that came to either."""
    came: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(f"{self.path} {self.headers['X-API-Key']}")
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/other")
            self.end_headers()
            self.wfile.write(json.dumps({"error": "moved"}).encode())

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", lambda: came
    server.shutdown()
    server.server_close()


def test_the_key_is_not_taken_along_by_a_redirect(
    moved: tuple[str, Callable[[], list[str]]],
) -> None:
    """Whoever answers may not have the key sent to somebody else."""
    url, came = moved
    with pytest.raises(ServerRefused, match="302"):
        Api(url, "wfk_1").call("POST", "/first", {})
    assert came() == ["/first wfk_1"]


@pytest.mark.parametrize("key", ["wfk_1\nX-Evil: 1", "wfk_1€", "wfk_1\r", "\n"])
def test_a_key_that_is_no_header_is_not_shown(
    call: Call, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """What the HTTP library says of a bad header repeats it: it is refused before."""
    monkeypatch.setenv("WFCORE_KEY", key)
    said = call("--url", "http://127.0.0.1:1", "workflow", "list")
    assert said.status == 1
    assert said.err.count("\n") == 1
    assert "wfk_1" not in said.err


@pytest.mark.parametrize(
    "url", ["http://me:s3cr3t@127.0.0.1:1", "http://[::1", "http://127.0.0.1:1/?key=s3cr3t"]
)
def test_what_is_no_address_is_refused_without_repeating_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """It may hold a password, which is not used."""
    monkeypatch.setenv("WFCORE_KEY", "wfk_1")
    said = call("--url", url, "workflow", "list")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert "must be like https" in said.err
    assert "s3cr3t" not in said.err


def test_an_answer_that_breaks_off_is_an_error_in_one_line(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a refusal, too."""

    class Breaks(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(500)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"abc")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    monkeypatch.setenv("WFCORE_KEY", "wfk_1")
    with HTTPServer(("127.0.0.1", 0), Breaks) as server:
        Thread(target=server.handle_request, daemon=True).start()
        said = call("--url", f"http://127.0.0.1:{server.server_address[1]}", "workflow", "list")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert "nobody answers" in said.err
