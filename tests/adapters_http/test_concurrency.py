"""A workflow that is full and skips: what each door answers. CC-4."""

import pytest

from tests.support.http_world import World
from wfcore.model.workflow import Concurrency, OnLimit, Variable
from wfcore.ports.runtime import StepEnd

FULL = "The workflow allows 1 execution at once, and as many have not ended"


@pytest.fixture
async def flow(world: World) -> str:
    return await world.workflow(concurrency=Concurrency(1, on_limit=OnLimit.SKIP))


async def test_a_start_is_409_until_the_other_one_has_ended(world: World, flow: str):
    """Nothing is stored, and the same idempotency key may be used again. CC-4, IK-1."""
    await world.start(flow)
    once = {**world.bearer, "Idempotency-Key": "again"}
    path = f"/api/v1/workflows/{flow}/executions"
    for _ in range(2):
        refused = await world.post(path, {"inputs": {}}, headers=once)
        assert (refused.status_code, refused.json()) == (409, {"error": FULL})
    listed = (await world.get(f"/api/v1/executions?workflowId={flow}")).json()
    assert listed["total"] == 1
    await world.run(StepEnd())
    accepted = await world.post(path, {"inputs": {}}, headers=once)
    assert (accepted.status_code, "idempotent-replayed" in accepted.headers) == (202, False)


async def test_a_webhook_is_409_and_counts_it(world: World, flow: str):
    """The refusal is in the webhook's statistics by its status. CC-4, WH-9."""
    id = await world.webhook(flow)
    answers = [await world.post(f"/api/webhooks/{id}/trigger", {}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 409, 409]
    assert answers[1].json() == {"error": FULL}
    session = await world.sign_in()
    stats = (await world.get(f"/api/webhooks/{id}/stats", headers=session)).json()
    assert (stats["accepted"], stats["rejected"]) == (1, {"409": 2})


async def test_a_redrive_is_409(world: World, flow: str):
    """A redrive needs room, too. CC-4."""
    old = await world.start(flow)
    await world.post(f"/api/v1/executions/{old}/cancel")
    await world.start(flow)
    answer = await world.post(f"/api/v1/executions/{old}/redrive")
    assert (answer.status_code, answer.json()) == (409, {"error": FULL})


async def test_a_key_without_value_is_400(world: World):
    """It names the field. CC-3."""
    by_customer = Concurrency(1, "{{ variables.customer }}")
    unset = {"customer": Variable("customer")}
    flow = await world.workflow(concurrency=by_customer, variables=unset)
    answer = await world.post(f"/api/v1/workflows/{flow}/executions", {"inputs": {}})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("concurrency.key: ")


async def test_the_limit_is_in_the_workflow(world: World, flow: str):
    """The API's workflow shows it as it is in force. CC-5."""
    shown = (await world.get(f"/api/v1/workflows/{flow}")).json()
    assert shown["concurrency"] == {"limit": 1, "key": None, "onLimit": "skip"}
