"""Numbers at every door of HTTP: what is shown is what is kept. NU-1, NU-2."""

import pytest

from tests.support.http_world import World
from wfcore.model.review import Column, ColumnType

HUGE = ["40111222333444555666777", "9223372036854775808", "-9223372036854775809", "1e400"]
ROUNDED = ["1.00000000000000000001", "1e-400"]


async def refused(world: World, path: str, body: str) -> str:
    """The words of the refusal; the body is sent as it is written."""
    answer = await world.http.post(path, content=body, headers=world.bearer)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"])


@pytest.mark.parametrize("number", HUGE)
async def test_inputs_are_refused_with_their_path(world: World, number: str) -> None:
    """At a start and in a gate."""
    url = f"/api/v1/workflows/{await world.workflow()}/executions"
    said = await refused(world, url, f'{{"inputs": {{"rows": [{{"no": {number}}}]}}}}')
    assert said.startswith("inputs.rows[0].no: the number ")
    gate = f'{{"message": "Pay?", "groups": [{{"name": "pay", "rows": [{{"no": {number}}}]}}]}}'
    assert (await refused(world, "/api/v1/gates", gate)).startswith("groups[0].rows[0].no: ")
    for exact in ROUNDED:
        body = f'{{"inputs": {{"rows": [{{"no": {exact}}}]}}}}'
        answer = await world.http.post(url, content=body, headers=world.bearer)
        assert answer.status_code == 202


@pytest.mark.parametrize("number", HUGE)
async def test_of_a_webhook_only_what_becomes_a_variable_is_judged(
    world: World, number: str
) -> None:
    """Other fields are ignored, whatever is in them; nothing of a refused one can be replayed."""
    workflow = await world.workflow()
    hook = await world.webhook(workflow, variable_mapping={"order": "no"})
    url = f"/api/webhooks/{hook}/trigger"
    assert (await refused(world, url, f'{{"no": [{number}]}}')).startswith("inputs.order[0]: ")
    content = f'{{"no": 9007199254740993, "other": {number}}}'
    answer = await world.http.post(url, content=content, headers=world.bearer)
    assert answer.status_code == 202, answer.text
    own = await world.webhook(workflow)
    plain = f"/api/webhooks/{own}/trigger"
    assert (await refused(world, plain, f'{{"no": {number}}}')).startswith("inputs.no: ")
    nested = f'{{"a": [{number}], "b\\u0000": 1}}'
    answer = await world.http.post(plain, content=nested, headers=world.bearer)
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize("number", [*HUGE, *ROUNDED])
async def test_decisions_refuse_what_would_change(world: World, number: str) -> None:
    """In rows and in answers, alone and in bulk; what is equal as a value passes."""
    fields = (Column("sum", "Sum", ColumnType.NUMBER),)
    _, approval = await world.paused(fields=fields)
    url = f"/api/v1/approvals/{approval}/approve"
    rows = f'{{"editedItems": {{"refunds": [{{"id": 1, "amount": {number}}}]}}}}'
    assert (await refused(world, url, rows)).startswith("editedItems.refunds[0].amount: the number")
    said = await refused(world, url, f'{{"answers": {{"sum": {number}}}}}')
    assert said.startswith("answers.sum: the number ")
    many = '{"decisions": [{"approvalId": "%s", "decision": "approve", "answers": {"sum": %s}}]}'
    said = await refused(world, "/api/v1/approvals/decisions", many % (approval, number))
    assert said.startswith("decisions[0].answers.sum: the number ")
    body = '{"answers": {"sum": 120.00}}'
    answer = await world.http.post(url, content=body, headers=world.bearer)
    assert answer.status_code == 200, answer.text
