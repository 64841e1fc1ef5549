"""Several approvals decided at once: the preview, the verdicts, and what came between. AP-39."""

import re
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from tests.support.http_world import World, a_world
from wfcore.model.access import OPERATOR, Permission
from wfcore.rules.approval.agreement import items_hash
from wfcore.time import HOUR
from wfcore.usecases.approvals.approvals import read_approval
from wfcore.usecases.workflows.workflows import share_workflow

HTML = {"Accept": "text/html"}


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


async def several(world: World, *decisions: dict[str, object], **more: object):
    path = "/api/v1/approvals/decisions"
    return await world.post(path, {"decisions": list(decisions), **more})


BOTH = ("ann@example.org", "bob@example.org")


async def asked(world: World, id: str, decision: str = "approve") -> dict[str, object]:
    seen = (await world.get(f"/api/v1/approvals/{id}")).json()["itemsHash"]
    return {"approvalId": id, "decision": decision, "expectedItemsHash": seen}


async def test_each_is_decided_by_itself(world: World):
    """Decided, one of two votes, gone, changed, unknown: each has its result, in order. AP-39."""
    one, other, gone = await world.waiting(3)
    (voted,) = await world.waiting(1, required_approvals=2, approvers=BOTH)
    bodies = [await asked(world, id) for id in (one, voted, gone)]
    await world.post(f"/api/v1/approvals/{gone}/reject", {})
    changed = {**await asked(world, other), "expectedItemsHash": "0" * 64}
    missing = {"approvalId": "appr_none", "decision": "reject"}
    answer = await several(world, *bodies, changed, missing, comment="as every month")
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    assert [(row["approvalId"], row["outcome"], row["status"]) for row in results] == [
        (one, "decided", "APPROVED"),
        (voted, "agreed", "PENDING"),
        (gone, "already_decided", None),
        (other, "changed", None),
        ("appr_none", "not_found", None),
    ]
    assert [row["error"] is None for row in results] == [True, True, False, False, False]
    assert (await world.get(f"/api/v1/approvals/{one}")).json()["comment"] == "as every month"
    assert (await world.get(f"/api/v1/approvals/{other}")).json()["status"] == "PENDING"


@pytest.mark.parametrize(
    ("decisions", "says"),
    [
        ([{"approvalId": "a", "decision": "approve"}], "decisions[0].expectedItemsHash: is requ"),
        ([{"approvalId": "a", "decision": "reject"}] * 2, "decisions[1].approvalId: stands twice"),
        ([{"approvalId": f"a{n}", "decision": "reject"} for n in range(51)], "decisions: at most"),
        ([{"approvalId": "a", "decision": "maybe"}], "decisions[0].decision: must be approve or"),
        ([{"approvalId": "a", "decision": "reject"}, {}], "decisions[1].approvalId: is required"),
        ([{"approvalId": "a", "decision": "reject", "x": 1}], "decisions[0].x: unknown field"),
        (["a"], "decisions[0]: must be an object"),
        ({}, "decisions: must be an array"),
    ],
)
async def test_what_is_unclear_decides_nothing(world: World, decisions: object, says: str):
    """The answer names the place, and none of the others was decided. AP-39, ER-1."""
    answer = await world.post("/api/v1/approvals/decisions", {"decisions": decisions})
    assert (answer.status_code, answer.json()["error"][: len(says)]) == (400, says)


async def test_who_may_not_is_told_for_each(world: World):
    """A starter who may not approve their own, and required answers: neither is decided. AP-18."""
    (own,) = await world.waiting(1, allow_self_approval=False)
    body = await asked(world, own)
    (result,) = (await several(world, body)).json()["results"]
    assert (result["outcome"], result["status"]) == ("not_allowed", None)
    assert (await world.get(f"/api/v1/approvals/{own}")).json()["status"] == "PENDING"


async def test_the_preview_says_what_is_in_the_way(world: World):
    """Somebody's edits, votes that are missing, my own execution: each in words, and left out."""
    session = await world.sign_in()
    (own,) = await world.waiting(1, allow_self_approval=False)
    page = (await world.http.get(f"/inbox/decide?id={own}", headers={**HTML, **session})).text
    assert "Who started the execution may not approve it" in page
    assert f"seen.{own}" not in page
    (others,) = await world.waiting(1, approvers=("eva@example.org",))
    german = {**HTML, **session, "Accept-Language": "de"}
    path = f"/inbox/decide?decision=reject&id={others}"
    page = (await world.http.get(path, headers=german)).text
    assert "Sie dürfen über diese Freigabe nicht entscheiden" in page
    many = "&".join(f"id=a{n}" for n in range(51))
    assert (
        await world.http.get(f"/inbox/decide?{many}", headers={**HTML, **session})
    ).status_code == 400
    assert (
        await world.http.get("/inbox/decide?id=nobody", headers={**HTML, **session})
    ).status_code == 404
    empty = await world.http.get("/inbox/decide", headers={**HTML, **session})
    assert "No approval was selected" in empty.text
    assert (
        await world.http.get("/inbox/decide?decision=x", headers={**HTML, **session})
    ).status_code == 400


async def test_who_may_not_decide_is_told_why(world: World):
    """The page of an approval that I may not decide says so, and has no button to approve."""
    session = await world.sign_in()
    (own,) = await world.waiting(1, allow_self_approval=False)
    (free,) = await world.waiting(1)
    pages = [
        await world.http.get(f"/approvals/{id}", headers={**HTML, **session}) for id in (own, free)
    ]
    told = ["Who started the execution may not approve it" in page.text for page in pages]
    offered = ['value="approve"' in page.text for page in pages]
    assert (told, offered) == ([True, False], [False, True])


async def test_the_form_carries_what_was_shown(world: World):
    """The hash in the form is that of the rows that are summed up beside it. AP-19."""
    session = await world.sign_in()
    (id,) = await world.waiting(1)
    page = (await world.http.get(f"/inbox/decide?id={id}", headers={**HTML, **session})).text
    shown = re.search(rf'name="seen\.{id}" value="(\w+)"', page)
    assert shown
    assert shown[1] == items_hash(await read_approval(world.services, OPERATOR, id))


async def test_what_is_ticked_is_decided_as_it_was_shown(world: World):
    """Each by the hash in the form; the answer is a page that says what came of each. AP-39."""
    ours = {**HTML, **await world.sign_in(), "Origin": world.url}
    one, other = await world.waiting(2)
    page = (await world.http.get(f"/inbox/decide?id={one}&id={other}", headers=ours)).text
    form = dict(re.findall(r'name="(seen\.\w+)" value="(\w+)"', page))
    form |= {"decision": "approve", f"seen.{other}": "0" * 64}
    answer = await world.http.post("/inbox/decide", data=form, headers=ours)
    assert (answer.status_code, "<h1" in answer.text) == (200, True)
    found = [(await world.get(f"/api/v1/approvals/{id}")).json()["status"] for id in (one, other)]
    assert found == ["APPROVED", "PENDING"]


async def test_the_inbox_is_searched(world: World):
    """By message, step, workflow or id; the words stay in every link of the page. B6."""
    session = await world.sign_in()
    headers = {**HTML, **session}
    (id,) = await world.waiting(1)
    for text in ("PLEASE review", "payout", id[-8:], "refunds"):
        page = (await world.http.get("/inbox", params={"q": text}, headers=headers)).text
        assert f'id="{id}"' in page, text
    none = (await world.http.get("/inbox?q=other&view=waiting", headers=headers)).text
    assert f'id="{id}"' not in none
    assert "No match." in none
    assert "view=decided&amp;q=other" in none


async def test_pages_of_the_inbox_miss_nothing_while_others_decide(world: World):
    """By expiry; no row twice or missing though rows of the page before were decided. PG-5."""
    session = await world.sign_in()
    headers = {**HTML, **session}
    late, soon = [await world.waiting(30, timeout_ms=hours * HOUR) for hours in (2, 1)]
    first = (await world.http.get("/inbox", headers=headers)).text
    shown = re.findall(r'<li [^>]*id="(appr_\w+)"', first)
    assert len(shown) == 50
    (after,) = re.findall(r'rel="next" href="([^"]*)"', first)
    for id in shown[:5]:
        await world.post(f"/api/v1/approvals/{id}/reject", {})
    second = (await world.http.get(after.replace("&amp;", "&"), headers=headers)).text
    rest = re.findall(r'<li [^>]*id="(appr_\w+)"', second)
    assert sorted((shown + rest)[:30]) == sorted(soon)
    assert sorted((shown + rest)[30:]) == sorted(late)


@pytest.mark.parametrize("named", [True, False])
async def test_who_sees_which_approval_in_which_state(world: World, named: bool):
    """
    Page × role × state: owners and named approvers, else whoever may edit the workflow; to all
    others it is not there. It asks for a decision as long as one is possible. AC-5, AP-10.
    """
    ids = {name: (await world.account(name)).id for name in ("carl", "dora", "erik", "eve")}
    people = {name: {**HTML, **await world.sign_in(name)} for name in ("ann", *ids)}
    approvers = ("carl@example.org", "ann@example.org") if named else ()
    states = ("PENDING", "APPROVED", "CANCELLED", "REJECTED")
    found = {}
    for state in states:
        (found[state],) = await world.waiting(1, approvers=approvers, timeout_ms=HOUR)
        flow = (await read_approval(world.services, OPERATOR, found[state])).workflow_id
        for name, share in (("dora", Permission.EXECUTE), ("erik", Permission.EDIT)):
            await share_workflow(world.services, OPERATOR, flow, ids[name], share)
    await world.post(f"/api/v1/approvals/{found['APPROVED']}/approve", {})
    run = (await read_approval(world.services, OPERATOR, found["CANCELLED"])).execution_id
    await world.post(f"/api/v1/executions/{run}/cancel", {})
    sees = {"ann", "carl"} if named else {"ann", "erik"}
    for state in states:
        if state == "REJECTED":
            world.clock.advance(HOUR)  # nobody decided in time
        path = f"/approvals/{found[state]}"
        for name, headers in people.items():
            page = await world.http.get(path, headers=headers)
            assert page.status_code == (200 if name in sees else 404), (state, name)
            assert ('value="approve"' in page.text) == (name in sees and state == "PENDING")
        assert (await world.http.get(path, headers=HTML)).status_code == 401
        assert (await read_approval(world.services, OPERATOR, found[state])).status == state
