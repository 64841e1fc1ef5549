"""What strangers send is bounded while it arrives."""

from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_http.strangers_bodies import StrangersBodies
from tests.support.http_world import World, a_world
from wfcore.errors import NotReady


def test_one_client_and_all_together_have_a_bound():
    """What one client holds is no other's matter, until all hold too much. LM-12."""
    bodies = StrangersBodies(most=25, most_of_one=10)
    with bodies.arriving("a") as first, bodies.arriving("a") as second:
        first(6)
        second(4)
        with pytest.raises(NotReady):
            second(1)
        with bodies.arriving("b") as other, bodies.arriving("c") as last:
            other(10)
            with pytest.raises(NotReady):
                last(6)


def test_what_has_arrived_no_longer_counts():
    """However often, and though it was refused in the middle. LM-12."""
    bodies = StrangersBodies(most=10, most_of_one=10)

    def refused():
        with bodies.arriving("a") as took:
            took(10)
            took(1)

    for _ in range(3):
        with pytest.raises(NotReady):
            refused()
    assert not bodies._by_client


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig()) as made:
        yield made


async def test_only_who_is_not_known_yet_is_counted(world: World, monkeypatch: pytest.MonkeyPatch):
    """A webhook whose bodies are too many is 503 with a time; whoever shows a key goes on."""
    real = StrangersBodies.arriving

    def little(self, client):
        self.most_of_one = 20
        return real(self, client)

    monkeypatch.setattr(StrangersBodies, "arriving", little)
    hook = await world.webhook()
    large = {"note": "x" * 50}
    refused = await world.post(f"/api/webhooks/{hook}/trigger", json=large)
    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
    assert (await world.post(f"/api/webhooks/{hook}/trigger", json={})).status_code == 202
    path = "/api/v1/workflows/" + await world.workflow()
    assert (await world.post(f"{path}/execute", json={"inputs": large})).status_code != 503
