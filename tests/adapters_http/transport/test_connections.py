"""The ledger of connections: how many there may be, and how much may wait for their clients."""

import resource

import pytest
from attrs import define, field

from adapters_http.transport.connections import STALLED_S, ConnectionLimits, Connections


@define(eq=False)
class Client:
    """A connection that does as it is told."""

    address: str = "here"
    left: int = 0
    dropped: bool = False

    def unsent(self) -> int:
        return self.left

    def drop(self) -> None:
        self.dropped = True


@define
class Time:
    now: float = 0.0
    ledger: Connections = field(init=False)

    def __call__(self) -> float:
        return self.now


def a_ledger(**room: int) -> tuple[Connections, Time]:
    time = Time()
    return Connections(ConnectionLimits(**room), time), time


def entered(ledger: Connections, *addresses: str) -> list[Client]:
    clients = [Client(address) for address in addresses]
    assert all(ledger.enter(client) for client in clients)
    return clients


def test_a_new_connection_takes_the_place_of_the_longest_idle_one() -> None:
    """Whoever waits for a request the longest goes; who began to wait again later stays."""
    ledger, _ = a_ledger(most=2)
    first, second = entered(ledger, "a", "b")
    ledger.busy(first)
    ledger.idle(first)
    entered(ledger, "c")
    assert (first.dropped, second.dropped, len(ledger)) == (False, True, 2)


def test_nobody_at_work_has_to_go() -> None:
    """Where all are being answered the new one is refused, and leaves nothing behind."""
    ledger, _ = a_ledger(most=2)
    clients = entered(ledger, "a", "b")
    for client in clients:
        ledger.busy(client)
    refused = Client("c")
    assert not ledger.enter(refused)
    ledger.leave(refused)
    assert (len(ledger), ledger.refused, [one.dropped for one in clients]) == (2, 1, [False] * 2)
    ledger.leave(clients[0])
    entered(ledger, "c")


def test_one_address_takes_room_from_itself_alone() -> None:
    """At its own limit an address loses its own longest idle connection, nobody else's."""
    ledger, _ = a_ledger(most=10, most_each=2)
    other, mine, _ = entered(ledger, "b", "a", "a")
    entered(ledger, "a")
    assert (other.dropped, mine.dropped) == (False, True)


def test_what_waits_in_all_is_bounded() -> None:
    """Those that took nothing for a second go first, the longest waiting one before the others."""
    ledger, time = a_ledger(unsent=100)
    clients = entered(ledger, *"abcd")
    for client in clients[:3]:
        client.left = 30
        ledger.is_slow(client)
        time.now += STALLED_S
    clients[0].left = 20  # it took something
    clients[3].left = 40
    ledger.is_slow(clients[3])
    assert [client.dropped for client in clients] == [False, True, True, False]
    assert ledger.unsent == 60


def test_where_all_make_progress_the_largest_goes() -> None:
    """What is large is given up before what is small."""
    ledger, _ = a_ledger(unsent=100)
    clients = entered(ledger, *"abc")
    for client, left in zip(clients, (20, 60, 30), strict=True):
        client.left = left
        ledger.is_slow(client)
    assert [client.dropped for client in clients] == [False, True, False]
    assert ledger.unsent == 50


def test_one_answer_is_always_allowed() -> None:
    """However large it is; and what was taken, or left, counts no more."""
    ledger, _ = a_ledger(unsent=100)
    one, other = entered(ledger, *"ab")
    one.left = 1_000
    ledger.is_slow(one)
    assert (one.dropped, ledger.unsent) == (False, 1_000)
    ledger.took_all(one)
    other.left = 100
    ledger.is_slow(other)
    ledger.leave(other)
    assert ledger.unsent == 0


def test_how_long_a_client_took_nothing() -> None:
    """Counted from when it last took something."""
    ledger, time = a_ledger()
    (one,) = entered(ledger, "a")
    one.left = 10
    ledger.is_slow(one)
    time.now = 5.0
    assert ledger.took_nothing_for(one) == 5.0
    one.left = 9
    assert ledger.took_nothing_for(one) == 0.0
    time.now = 7.0
    assert ledger.took_nothing_for(one) == 2.0
    ledger.took_all(one)
    assert ledger.took_nothing_for(one) == 0.0


@pytest.mark.parametrize(
    ("files", "places", "most", "each"),
    [
        (1_024, 8, 384, 192),
        (256, 8, 32, 16),
        (64, 8, 16, 8),
        (resource.RLIM_INFINITY, 8, 10_000, 5_000),
    ],
)
def test_the_engine_keeps_descriptors(
    monkeypatch: pytest.MonkeyPatch, files: int, places: int, most: int, each: int
) -> None:
    """A quarter, or what its places need; of the rest a connection may take two."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (files, files))
    assert ConnectionLimits.of_process(places) == ConnectionLimits(most, each)
    assert ConnectionLimits.of_process(places, 10, 100) == ConnectionLimits(10, 10)
    able = 15_000 if files == resource.RLIM_INFINITY else most
    assert ConnectionLimits.of_process(places, 65_535).most == able
