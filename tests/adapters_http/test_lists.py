"""Lists: what narrows approvals for whom, and how every list is read on behind a row."""

from typing import Any

import pytest

from tests.support.http_world import World, bearer, code, review
from wfcore.model.access import OPERATOR, Permission, Principal
from wfcore.usecases.webhooks import webhooks
from wfcore.usecases.webhooks.webhooks import NewWebhook
from wfcore.usecases.workflows import workflows


async def test_approvals_are_narrowed_for_each_account(world: World):
    """
    By workflow, by execution, and to those that wait for the caller: another account's yes, or
    its share, changes nobody else's. Each over two pages. PG-4, AC-5.
    """
    bob = await world.account("bob")
    bobs = bearer((await world.new_key(bob)).text)
    shared = await world.workflow(review(required_approvals=2), name="shared")
    mine = await world.workflow(review(), name="mine")
    theirs = await world.workflow(review(approvers=("bob@example.org",)), name="theirs")
    await workflows.share_workflow(world.services, OPERATOR, shared, bob.id, Permission.EDIT)
    opened: dict[str, tuple[str, str]] = {}
    for name, workflow in (("s1", shared), ("s2", shared), ("m1", mine), ("t1", theirs)):
        world.clock.advance(1)
        execution = await world.start(workflow)
        await world.run()
        found = await world.get(f"/api/v1/approvals/execution/{execution}")
        opened[name] = execution, found.json()["approvals"][0]["id"]
    await world.post(f"/api/v1/approvals/{opened['s1'][1]}/approve")
    await world.post(f"/api/v1/approvals/{opened['m1'][1]}/reject")
    names = {id: name for name, (_, id) in opened.items()}

    async def listed(query: str, headers: dict[str, str]) -> list[str]:
        rows: list[str] = []
        for page in (1, 2):
            url = f"/api/v1/approvals?{query}&size=2&page={page}"
            answer = (await world.http.get(url, headers=headers)).json()
            assert len(answer["approvals"]) <= 2
            rows += [names[one["id"]] for one in answer["approvals"]]
        assert answer["total"] == len(rows), query
        return rows

    execution = opened["s2"][0]
    for query, anns, his in (
        ("", ["t1", "m1", "s2", "s1"], ["t1", "s2", "s1"]),
        (f"workflowId={shared}", ["s2", "s1"], ["s2", "s1"]),
        (f"workflowId={mine}", ["m1"], []),
        (f"workflowId={theirs}&sort=createdAt", ["t1"], ["t1"]),
        (f"executionId={execution}", ["s2"], ["s2"]),
        (f"executionId={opened['m1'][0]}", ["m1"], []),
        (f"executionId={execution}&workflowId={mine}", [], []),
        ("waitingForMe=true", ["s2"], ["t1", "s2", "s1"]),
        ("waitingForMe=true&sort=createdAt", ["s2"], ["s1", "s2", "t1"]),
        (f"waitingForMe=true&workflowId={shared}", ["s2"], ["s2", "s1"]),
        (f"waitingForMe=true&executionId={opened['s1'][0]}", [], ["s1"]),
        ("waitingForMe=false&status=REJECTED", ["m1"], []),
    ):
        assert await listed(query, world.bearer) == anns, query
        assert await listed(query, bobs) == his, query
    refused = await world.get("/api/v1/approvals?waitingForMe=yes")
    assert (refused.status_code, "waitingForMe: must be" in refused.text) == (400, True)


async def fill(world: World, path: str) -> dict[str, str]:
    """Some rows for the list at *path*, and the headers with which they are seen."""
    workflow = await world.workflow(review())
    for number in range(3 if "webhooks" in path else 5):
        if "approvals" in path or "executions" in path:
            await world.start(workflow)
            await world.run()
        elif "workflows" in path:
            await world.workflow(code(), name=f"flow {number}")
        else:
            new = NewWebhook(workflow, f"hook {number}", world.key.key.id)
            await webhooks.create_webhook(world.services, Principal(world.ann), new)
    return await world.sign_in() if path == "/api/webhooks" else world.bearer


ROWS_OF = {
    "/api/v1/executions": "items",
    "/api/v1/executions?sort=startedAt": "items",
    "/api/v1/approvals": "approvals",
    "/api/v1/workflows": "items",
    "/api/webhooks": "webhooks",
}
NOT_AT_THE_FRONT = {"/api/v1/executions?sort=startedAt", "/api/v1/workflows", "/api/webhooks"}


@pytest.mark.parametrize("path", ROWS_OF)
async def test_a_list_is_read_on_with_next(world: World, path: str):
    """
    Each `next` gives the rows behind, whatever was added before them; the last part has none.
    What is read on says no total and no page. PG-5.
    """
    headers, rows = await fill(world, path), ROWS_OF[path]
    joint = "&" if "?" in path else "?"

    async def part(query: str) -> dict[str, Any]:
        answer = await world.http.get(f"{path}{joint}{query}", headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    whole = await part("size=100")
    assert whole.keys() == {rows, "total", "page", "size"}
    seen = await part("size=2")
    assert (seen["total"], seen["page"], seen["size"]) == (whole["total"], 1, 2)
    shown = seen[rows]
    while "next" in seen:
        if len(shown) == 2 and path not in NOT_AT_THE_FRONT:
            await fill(world, path)
        seen = await part(f"size=2&after={seen['next']}")
        assert {"total", "page"}.isdisjoint(seen)
        shown += seen[rows]
        assert len(shown) <= len(whole[rows])
    assert shown == whole[rows]


async def test_a_cursor_that_is_none_is_named(world: World):
    """400 for what no list gave, another list's cursor, and a cursor beside a page. PG-5."""
    headers = await fill(world, "/api/v1/executions")
    next = (await world.get("/api/v1/executions?size=2")).json()["next"]
    for path, error in (
        ("/api/v1/executions?after=2", "after: must be `next` of a page of this list"),
        (f"/api/v1/executions?after={next[:-1]}", "after: must be `next`"),
        (f"/api/v1/approvals?after={next}", "after: must be `next`"),
        (f"/api/v1/executions?page=2&after={next}", "page: does not go with after"),
        (f"/api/v1/executions?after={next}&after={next}", "after: stands twice"),
        (f"/api/v1/executions?next={next}", "next: unknown query parameter"),
    ):
        answer = await world.http.get(path, headers=headers)
        assert (answer.status_code, error in answer.json()["error"]) == (400, True), path
