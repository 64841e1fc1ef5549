"""Several approvers, other eyes and changed rows, at all three doors."""

import asyncio
import json

import httpx
import pytest

from tests.support.http_world import ROWS, World, bearer
from wfcore.model.access import Account
from wfcore.usecases.upkeep import sweeping

RESPOND = "/api/webhook-trigger/approval"
NAMES = ("ann", "bob", "cyd")
AUTHENTICATORS = ("v1", "post", "link")


class Door:
    """One way to decide one approval, as somebody."""

    def __init__(self, world: World, id: str, kind: str) -> None:
        self.world, self.id, self.kind = world, id, kind

    async def decide(self, who: dict[str, str], verb: str = "approve", **more) -> httpx.Response:
        if self.kind == "v1":
            url = f"/api/v1/approvals/{self.id}/{verb}"
            return await self.world.post(url, more or None, headers=who)
        if self.kind == "post":
            body = {"approvalId": self.id, "decision": verb, **more}
            return await self.world.post(RESPOND, body, headers=who)
        url = f"{RESPOND}/{self.id}/{verb}"
        return await self.world.get(url, headers=who, params={"confirm": "1", **more})


async def people(world: World) -> dict[str, dict[str, str]]:
    """Headers of ann, bob and cyd."""
    found: dict[str, Account] = {"ann": world.ann}
    for name in NAMES[1:]:
        found[name] = await world.account(name)
    return {name: bearer((await world.new_key(who)).text) for name, who in found.items()}


async def asked(world: World, required: int = 2, **step) -> tuple[str, str]:
    named = tuple(f"{name}@example.org" for name in NAMES)
    return await world.paused(required_approvals=required, approvers=named, **step)


async def seen(world: World, id: str):
    return (await world.get(f"/api/v1/approvals/{id}")).json()


async def test_an_approval_that_asks_for_nothing_more_is_as_specified(world: World):
    """By default one approver is enough, who may be the starter, and nobody is reminded."""
    _, id = await world.paused()
    one = await seen(world, id)
    assert (one["requiredApprovals"], one["approvedBy"]) == (1, [])
    assert (one["allowSelfApproval"], one["reminders"]) == (True, [])
    assert (await world.post(f"/api/v1/approvals/{id}/approve")).json()["status"] == "APPROVED"


@pytest.mark.parametrize("kind", AUTHENTICATORS)
async def test_two_must_agree(world: World, kind: str):
    """The first yes is 200 and PENDING, the second APPROVED, at each door. AP-15."""
    who = await people(world)
    execution, id = await asked(world)
    door = Door(world, id, kind)
    assert (await door.decide(who["bob"])).status_code == 200
    one = await seen(world, id)
    assert (one["status"], one["approvedBy"]) == ("PENDING", ["bob@example.org"])
    assert one["decidedBy"] is one["decidedAt"] is None
    view = (await world.get(f"/api/v1/executions/{execution}")).json()
    assert view["status"] == "AWAITING_APPROVAL"
    assert (await door.decide(who["ann"])).status_code == 200
    one = await seen(world, id)
    assert (one["status"], one["decidedBy"]) == ("APPROVED", "ann@example.org")
    assert one["approvedBy"] == ["bob@example.org", "ann@example.org"]
    assert [entry["by"] for entry in one["history"]] == [None, *one["approvedBy"]]
    await world.run()
    result = (await world.get(f"/api/v1/executions/{execution}/result")).json()
    assert result["stepResults"]["review"]["output"]["groups"] == {"refunds": ROWS}


@pytest.mark.parametrize(("kind", "status"), [("v1", 404), ("post", 409), ("link", 409)])
async def test_nobody_counts_twice(world: World, kind: str, status: int):
    """The same approver again, with another key and at another door, is refused. AP-14, AP-16."""
    who = await people(world)
    _, id = await asked(world)
    assert (await Door(world, id, "v1").decide(who["ann"])).status_code == 200
    again = bearer((await world.new_key()).text)
    assert (await Door(world, id, kind).decide(again)).status_code == status
    one = await seen(world, id)
    assert (one["status"], one["approvedBy"]) == ("PENDING", ["ann@example.org"])


@pytest.mark.parametrize("kind", AUTHENTICATORS)
async def test_one_rejection_is_enough(world: World, kind: str):
    """Also of who has approved, at each door. AP-15, AP-16."""
    who = await people(world)
    execution, id = await asked(world, required=3)
    door = Door(world, id, kind)
    await door.decide(who["ann"])
    assert (await door.decide(who["ann"], "reject")).status_code == 200
    assert (await seen(world, id))["status"] == "REJECTED"
    view = (await world.get(f"/api/v1/executions/{execution}")).json()
    assert view["status"] == "CANCELLED"


async def test_of_racing_approvers_one_completes(world: World):
    """Everybody at every door at once: as many 200 as required, one decision. AP-6, AP-15."""
    who = await people(world)
    _, id = await asked(world)
    asks = [Door(world, id, kind).decide(who[name]) for kind in AUTHENTICATORS for name in NAMES]
    statuses = [answer.status_code for answer in await asyncio.gather(*asks)]
    assert statuses.count(200) == 2
    assert set(statuses) <= {200, 404, 409}
    one = await seen(world, id)
    assert (one["status"], len(set(one["approvedBy"])), len(one["history"])) == ("APPROVED", 2, 3)


async def test_an_edit_asks_the_others_again(world: World):
    """Changed rows leave only the editor's yes; the next yes is to the new rows. AP-17."""
    who = await people(world)
    _, id = await asked(world)
    door, edited = Door(world, id, "v1"), [{"id": 2, "amount": 15}]
    await door.decide(who["ann"])
    answer = await door.decide(who["bob"], editedItems={"refunds": edited})
    assert (answer.json()["status"], answer.json()["approvedBy"]) == (
        "PENDING",
        ["bob@example.org"],
    )
    decided = (await door.decide(who["ann"])).json()
    assert decided["status"] == "APPROVED"
    assert decided["reviewableGroups"][0]["items"] == edited


@pytest.mark.parametrize("kind", AUTHENTICATORS)
async def test_an_approve_of_other_rows_than_seen_is_409(world: World, kind: str):
    """`expectedItemsHash` that is not of the rows as they stand decides nothing. AP-19."""
    who = await people(world)
    _, id = await asked(world)
    before = (await seen(world, id))["itemsHash"]
    edit = {"editedItems": {"refunds": ROWS[:1]}, "expectedItemsHash": before}
    assert (await Door(world, id, "v1").decide(who["ann"], **edit)).status_code == 200
    after = (await seen(world, id))["itemsHash"]
    door = Door(world, id, kind)
    refused = await door.decide(who["bob"], expectedItemsHash=before)
    assert (before != after, refused.status_code) == (True, 409)
    assert (await seen(world, id))["approvedBy"] == ["ann@example.org"]
    assert (await door.decide(who["bob"], expectedItemsHash=after)).status_code == 200
    assert (await seen(world, id))["status"] == "APPROVED"


async def test_the_page_shows_the_changed_rows(world: World):
    """A click on a page whose rows have changed shows the new ones and asks again. AP-19."""
    who = await people(world)
    _, id = await asked(world)
    old = (await seen(world, id))["itemsHash"]
    edited = {"editedItems": {"refunds": [{"id": 2, "amount": 77}]}}
    await Door(world, id, "v1").decide(who["ann"], **edited)
    page = await Door(world, id, "link").decide(who["bob"], expectedItemsHash=old)
    assert page.status_code == 409
    assert "rows have changed" in page.text
    assert "77" in page.text
    assert (await seen(world, id))["itemsHash"] in page.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("v1", {"expectedItemsHash": None}),
        ("v1", {"expectedItemsHash": 1}),
        ("v1", {"expecteditemshash": "0"}),
        ("post", {"expectedItemsHash": None}),
        ("post", {"expectedItemsHash": ["0"]}),
    ],
)
async def test_a_hash_that_is_none_is_400(world: World, kind: str, body):
    """null, another type or a misspelt name protects nobody, so it decides nothing. AP-19."""
    _, id = await world.paused()
    answer = await Door(world, id, kind).decide(world.bearer, **body)
    assert answer.status_code == 400
    assert "xpected" in answer.json()["error"]
    assert (await seen(world, id))["status"] == "PENDING"


@pytest.mark.parametrize("kind", AUTHENTICATORS)
async def test_who_started_it_may_not_approve(world: World, kind: str):
    """403 for the starter at each door, named or not; a reject is open. AP-18."""
    who = await people(world)
    _, id = await asked(world, required=1, allow_self_approval=False)
    door = Door(world, id, kind)
    refused = await door.decide(world.bearer)
    assert refused.status_code == 403
    assert "another approver" in refused.text
    assert (await seen(world, id))["status"] == "PENDING"
    assert (await door.decide(who["bob"])).status_code == 200
    await world.run()
    _, id = await asked(world, required=1, allow_self_approval=False)
    assert (await Door(world, id, kind).decide(world.bearer, "reject")).status_code == 200


async def test_a_link_says_that_ones_yes_is_on_record(world: World):
    """Opened again it is 200 and tells; the reject link still asks. AP-16, LK-1."""
    who = await people(world)
    _, id = await asked(world)
    recorded = await Door(world, id, "link").decide(who["ann"])
    assert "Your approval is on record" in recorded.text
    opened = await world.get(f"{RESPOND}/{id}/approve", headers=who["ann"])
    assert (opened.status_code, "Your approval is on record" in opened.text) == (200, True)
    assert 'name="confirm"' not in opened.text
    other = await world.get(f"{RESPOND}/{id}/reject", headers=who["ann"])
    assert 'name="confirm"' in other.text


async def test_the_detail_alone_carries_the_hash(world: World):
    """Lists have neither rows nor their digest. AP-13, AP-19."""
    _, id = await world.paused()
    assert len((await seen(world, id))["itemsHash"]) == 64
    (listed,) = (await world.get("/api/v1/approvals")).json()["approvals"]
    assert "itemsHash" not in listed


async def test_reminders_are_in_the_stream(world: World):
    """`approval.reminder` and `approval.assented` are events like any other. AP-15, AP-20."""
    who = await people(world)
    execution, id = await asked(world, timeout_ms=60_000, reminders=(10_000,))
    await Door(world, id, "v1").decide(who["bob"])
    one = await seen(world, id)
    assert one["reminders"] == [one["expiresAt"] - 10_000]
    world.clock.advance(50_000)
    await sweeping.sweep(world.services)
    await Door(world, id, "v1").decide(who["ann"], "reject")
    stream = await world.get(f"/api/v1/executions/{execution}/events")
    told = [json.loads(line[6:]) for line in stream.text.splitlines() if line.startswith("data: ")]
    kinds = [event["kind"] for event in told if event["kind"].startswith("approval.")]
    assert kinds == [f"approval.{what}" for what in ("created", "assented", "reminder", "rejected")]
    (reminder,) = (event for event in told if event["kind"] == "approval.reminder")
    assert reminder["data"] == {
        "step": "review", "approvalId": id, "expiresAt": one["expiresAt"], "before": 10_000,
    }  # fmt: skip


async def test_each_reader_sees_whether_they_can_decide_and_why_not(world: World):
    """In lists and details: the owner may not, an approver may, once, and nobody later. AP-10."""
    who = await people(world)
    _, id = await world.paused(
        required_approvals=2, approvers=("bob@example.org", "cyd@example.org")
    )

    async def told(name: str) -> tuple[bool, str | None]:
        detail = (await world.get(f"/api/v1/approvals/{id}", headers=who[name])).json()
        rows = (await world.get("/api/v1/approvals", headers=who[name])).json()["approvals"]
        of_run = f"/api/v1/approvals/execution/{detail['executionId']}"
        rows += (await world.get(of_run, headers=who[name])).json()["approvals"]
        keys = ("canDecide", "whyNot", "workflowName", "approvers", "approvedBy")
        assert [{key: row[key] for key in keys} for row in rows] == [
            {key: detail[key] for key in keys}
        ] * 2
        assert detail["workflowName"]
        assert detail["approvers"] == [
            "bob@example.org",
            "cyd@example.org",
        ]
        return detail["canDecide"], detail["whyNot"]

    assert await told("bob") == (True, None)
    assert await told("ann") == (False, "You are not an approver of this approval, or not now")
    await Door(world, id, "v1").decide(who["bob"])
    assert await told("bob") == (False, "You have approved this already")
    await Door(world, id, "v1").decide(who["cyd"])
    assert await told("cyd") == (False, "The approval has already been decided")


async def test_approvals_are_listed_by_their_expiry(world: World):
    """The first to expire first, whenever it was opened."""
    ids = [(await world.paused(timeout_ms=ms))[1] for ms in (9_000_000, 3_000_000, 6_000_000)]
    rows = (await world.get("/api/v1/approvals?sort=expiresAt")).json()["approvals"]
    assert [row["id"] for row in rows] == [ids[1], ids[2], ids[0]]
