"""Where a server listens."""

import socket
from contextlib import closing
from typing import Any

import pytest

from wfserver.serving import sockets


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


def names(host: str, **more: Any) -> list[tuple[str, int]]:
    made = sockets.listen(host, 0, **more)
    try:
        return [one.getsockname()[:2] for one in made]
    finally:
        sockets.close(made)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("127.0.0.1", ["127.0.0.1", "::1"]),
        ("localhost", ["127.0.0.1", "::1"]),
        ("::1", ["::1", "127.0.0.1"]),
        ("0.0.0.0", ["0.0.0.0"]),
        ("127.0.0.2", ["127.0.0.2"]),
    ],
)
def test_the_loopback_is_both(host: str, wanted: list[str], shared: bool) -> None:
    """By whichever of its names, at one port: whoever says `localhost` comes by either. CS-21."""
    if not has_ipv6():
        pytest.skip("no IPv6 here")
    found = names(host, shared=shared)
    assert [name for name, _ in found] == wanted
    assert len({port for _, port in found}) == 1


def test_where_somebody_has_one_of_them_it_does_not_listen() -> None:
    """Else clients of one family would talk to somebody else."""
    if not has_ipv6():
        pytest.skip("no IPv6 here")
    taken = socket.create_server(("::1", 0), family=socket.AF_INET6)
    with closing(taken), pytest.raises(OSError, match="in use"):
        sockets.listen("127.0.0.1", taken.getsockname()[1])


def test_without_ipv6_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose loopback has IPv4 alone serves by that."""
    create = socket.create_server

    def without(address: Any, **more: Any) -> socket.socket:
        if more["family"] == socket.AF_INET6:
            raise OSError(99, "Cannot assign requested address")
        return create(address, **more)

    monkeypatch.setattr(socket, "create_server", without)
    assert [name for name, _ in names("localhost")] == ["127.0.0.1"]
