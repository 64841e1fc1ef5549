"""Approvals under v1 and through the approval-response endpoint."""

import asyncio
import json
from threading import get_ident
from typing import Any

import pytest

from adapters_http import request_body
from adapters_http.handlers import approvals as handlers
from tests.support.http_world import ROWS, World, bearer, code
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec
from wfcore.ports.runtime import StepEnd
from wfcore.time import EpochMs
from wfcore.usecases.approvals import deciding
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.workflows import workflows

RESPOND = "/api/webhook-trigger/approval"


async def test_lists_leave_the_rows_out(world: World):
    """items is empty and itemsCount is kept in lists; the detail has all of it. AP-13."""
    execution, id = await world.paused()
    listed = (await world.get("/api/v1/approvals?status=PENDING")).json()
    assert listed.keys() == {"approvals", "total", "page", "size"}
    of_execution = (await world.get(f"/api/v1/approvals/execution/{execution}")).json()
    assert of_execution.keys() == {"approvals", "total"}
    (one,) = listed["approvals"]
    assert of_execution["approvals"] == [one]
    (group,) = one["reviewableGroups"]
    assert group == {"name": "refunds", "title": "Refunds", "items": [], "itemsCount": 2}
    detail = (await world.get(f"/api/v1/approvals/{id}")).json()
    (whole,) = detail["reviewableGroups"]
    assert (whole["items"], whole["itemsCount"], whole["rowKey"]) == (ROWS, 2, "id")
    assert whole["columns"][0] == {
        "key": "id", "title": "Order", "type": "number", "editable": False, "required": False,
        "options": [],
    }  # fmt: skip
    assert {key: detail[key] for key in one if key != "reviewableGroups"} == {
        key: value for key, value in one.items() if key != "reviewableGroups"
    }


async def test_an_approval_has_its_documented_fields(world: World):
    """expiresAt is createdAt plus timeout; what is not decided yet is null. AP-1."""
    execution, id = await world.paused()
    one = (await world.get("/api/v1/approvals")).json()["approvals"][0]
    assert (one["id"], one["executionId"], one["stepName"]) == (id, execution, "review")
    assert (one["status"], one["approvalMessage"]) == ("PENDING", "Please review")
    assert one["expiresAt"] == one["createdAt"] + one["timeout"]
    for field in ("decidedAt", "decidedBy", "decisionSource", "comment"):
        assert one[field] is None


async def test_an_approve_releases_the_rows_and_goes_on(world: World):
    """200 with the APPROVED approval and its history; the execution goes on. AP-2, AP-7, AP-12."""
    execution, id = await world.paused()
    answer = await world.post(f"/api/v1/approvals/{id}/approve", {"comment": "fine"})
    assert answer.status_code == 200
    decided = answer.json()
    assert (decided["status"], decided["comment"]) == ("APPROVED", "fine")
    assert (decided["decidedBy"], decided["decisionSource"]) == ("ann@example.org", "api")
    assert [entry["action"] for entry in decided["history"]] == ["created", "approved"]
    await world.run()
    result = (await world.get(f"/api/v1/executions/{execution}/result")).json()
    assert result["stepResults"]["review"]["output"]["groups"] == {"refunds": ROWS}


async def test_exactly_the_edited_rows_are_released(world: World):
    """With editedItems only the rows submitted go on; the history has both. AP-8, AP-12."""
    _, id = await world.paused()
    edited = [{"id": 2, "amount": 15}]
    body = {"editedItems": {"refunds": edited}}
    decided = (await world.post(f"/api/v1/approvals/{id}/approve", body)).json()
    assert decided["reviewableGroups"][0]["items"] == edited
    entry = decided["history"][-1]
    assert (entry["rowsBefore"], entry["rowsAfter"]) == ({"refunds": ROWS}, {"refunds": edited})


async def test_an_empty_edited_items_releases_nothing(world: World):
    """{} is not absent: a group left out releases none of its rows. AP-8."""
    _, id = await world.paused()
    decided = (await world.post(f"/api/v1/approvals/{id}/approve", {"editedItems": {}})).json()
    assert decided["reviewableGroups"][0]["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"editeditems": {}},
        {"editedItems": None},
        {"editedItems": []},
        {"editedItems": {"nope": []}},
        {"editedItems": {"refunds": {}}},
        {"editedItems": {"refunds": [1]}},
        {"editedItems": {"refunds": [{"id": 3, "amount": 1}]}},
        {"editedItems": {"refunds": [{"id": 1, "amount": "1"}]}},
        {"editedItems": {"refunds": [{"id": 1, "amount": None}]}},
        {"editedItems": {"refunds": [{"id": 1, "amuont": 7}]}},
        {"editedItems": {"refunds": [{"id": 1, "amount": 1}] * 2}},
        {"comment": 1},
        {"comment": "x" * 4_001},
    ],
)
async def test_a_mistake_decides_nothing(world: World, body):
    """400, and the approval is as open as before. AP-9."""
    _, id = await world.paused()
    answer = await world.post(f"/api/v1/approvals/{id}/approve", body)
    assert answer.status_code == 400
    assert (await world.get(f"/api/v1/approvals/{id}")).json()["status"] == "PENDING"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("approve", '{"editedItems": {"refunds": [{"id": 1, "amount": 5, "amount": 6}]}}'),
        ("approve", '{"editedItems": {"refunds": []}, "editedItems": {}}'),
        ("reject", '{"comment": "no", "comment": "yes"}'),
        (RESPOND, '{"approvalId": "ID", "decision": "reject", "decision": "approve"}'),
    ],
)
async def test_a_decision_that_says_two_things_is_none(world: World, path: str, body: str):
    """400 that names the key, at every door; a start takes the last one. AP-26."""
    _, id = await world.paused()
    url = path if path == RESPOND else f"/api/v1/approvals/{id}/{path}"
    answer = await world.http.post(url, content=body.replace("ID", id), headers=world.bearer)
    assert answer.status_code == 400
    assert "stands twice" in answer.json()["error"]
    assert (await world.get(f"/api/v1/approvals/{id}")).json()["status"] == "PENDING"
    start = f"/api/v1/workflows/{await world.workflow(name='other')}/executions"
    content = '{"inputs": {"a": 1, "a": 2}}'
    assert (await world.http.post(start, content=content, headers=world.bearer)).is_success


async def test_ten_thousand_rows_of_nine_columns_are_reviewed(world: World):
    """Proposed, shown, edited whole or by key, released and given out. LM-7, LM-10."""
    names = [f"column {number}" for number in range(8)]
    rows = [
        {"id": row, **{name: f"{name} of row {row}" for name in names}} for row in range(10_000)
    ]
    columns = (
        Column("id", "Id", ColumnType.NUMBER, editable=False),
        *(Column(n, n) for n in names),
    )
    group = GroupSpec("refunds", "Refunds", "{{ steps.fetch.output }}", columns, row_key="id")
    steps = (code(), ApprovalStep("review", "", groups=(group,)))
    output = "{{ steps.review.output.groups.refunds }}"
    workflow = await world.workflow(*steps, output=output, has_output=True)
    for edited in ([{**row, "column 0": "seen"} for row in rows], [{"id": 7, "column 0": "x"}]):
        execution = await world.start(workflow)
        await world.run(StepEnd(rows))
        (one,) = (await world.get(f"/api/v1/approvals/execution/{execution}")).json()["approvals"]
        assert one["reviewableGroups"][0]["itemsCount"] == 10_000
        url = f"/api/v1/approvals/{one['id']}"
        assert (await world.get(url)).json()["reviewableGroups"][0]["items"] == rows
        answer = await world.post(f"{url}/approve", {"editedItems": {"refunds": edited}})
        assert answer.status_code == 200, answer.text
        await world.run()
        result = (await world.get(f"/api/v1/executions/{execution}/result")).json()
        assert result["output"] == [{**rows[row["id"]], **row} for row in edited]


async def test_a_reject_ends_the_execution(world: World):
    """200 with the REJECTED approval; the execution is CANCELLED and says why. AP-3, EX-6."""
    execution, id = await world.paused()
    answer = await world.post(f"/api/v1/approvals/{id}/reject", {"comment": None})
    assert (answer.status_code, answer.json()["status"]) == (200, "REJECTED")
    view = (await world.get(f"/api/v1/executions/{execution}")).json()
    assert view["status"] == "CANCELLED"
    assert view["statusReason"] == {
        "code": "APPROVAL_REJECTED", "stepName": "review", "approvalId": id,
    }  # fmt: skip


async def test_a_further_decision_is_404_under_v1_and_409_elsewhere(world: World):
    """What is decided stays decided, and each door says so in its own way. AP-6, AP-14."""
    _, id = await world.paused()
    assert (await world.post(f"/api/v1/approvals/{id}/reject")).status_code == 200
    for verb in ("approve", "reject"):
        answer = await world.post(f"/api/v1/approvals/{id}/{verb}")
        assert answer.status_code == 404
        answer = await world.post(RESPOND, {"approvalId": id, "decision": verb})
        assert answer.status_code == 409
    assert (await world.post("/api/v1/approvals/appr_0/approve")).status_code == 404
    assert (await world.get(f"/api/v1/approvals/{id}")).json()["status"] == "REJECTED"


async def test_of_racing_decisions_exactly_one_wins(world: World):
    """Many at once, through two doors: one 200, the others refused. AP-6."""
    _, id = await world.paused()
    asks = [world.post(f"/api/v1/approvals/{id}/approve") for _ in range(5)]
    asks += [world.post(RESPOND, {"approvalId": id, "decision": "reject"}) for _ in range(5)]
    statuses = sorted(answer.status_code for answer in await asyncio.gather(*asks))
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 404, 409}
    history = (await world.get(f"/api/v1/approvals/{id}")).json()["history"]
    assert len(history) == 2


async def test_an_expired_approval_counts_as_rejected(world: World):
    """From expiresAt on, whether or not a timer ran; not a millisecond earlier. AP-4."""
    execution, id = await world.paused(timeout_ms=60_000)
    world.clock.advance(59_999)
    assert (await world.get(f"/api/v1/approvals/{id}")).json()["status"] == "PENDING"
    world.clock.advance(1)
    assert (await world.post(f"/api/v1/approvals/{id}/approve")).status_code == 404
    seen = (await world.get(f"/api/v1/approvals/{id}")).json()
    assert (seen["status"], seen["decisionSource"]) == ("REJECTED", "timeout")
    view = (await world.get(f"/api/v1/executions/{execution}")).json()
    assert view["statusReason"]["code"] == "APPROVAL_TIMEOUT"


@pytest.mark.parametrize("decision", ["approve", "APPROVE", "Reject"])
async def test_an_external_system_decides(world: World, decision: str):
    """200 `{ok, approvalId, decision}`; the case of the decision does not matter. AP-11."""
    _, id = await world.paused()
    answer = await world.post(RESPOND, {"approvalId": id, "decision": decision, "comment": "c"})
    assert answer.status_code == 200
    assert answer.json() == {"ok": True, "approvalId": id, "decision": decision.lower()}
    seen = (await world.get(f"/api/v1/approvals/{id}")).json()
    assert (seen["decisionSource"], seen["comment"]) == ("webhook", "c")


async def test_an_external_system_answers_what_is_asked(world: World):
    """Its answers are stored with its decision. AP-30."""
    _, id = await world.paused(fields=(Column("why", "Why", required=True),))
    body = {"approvalId": id, "decision": "approve"}
    assert (await world.post(RESPOND, body)).status_code == 400
    assert (await world.post(RESPOND, {**body, "answers": {"why": "so"}})).status_code == 200
    assert (await world.get(f"/api/v1/approvals/{id}")).json()["answers"] == {"why": "so"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"decision": "approve"}, 400),
        ({"approvalId": "appr_0", "decision": "approve", "answers": None}, 400),
        ({"approvalId": 1, "decision": "approve"}, 400),
        ({"approvalId": "appr_0"}, 400),
        ({"approvalId": "appr_0", "decision": "maybe"}, 400),
        ({"approvalId": "appr_0", "decision": True}, 400),
        ({"approvalId": "appr_0", "decision": "approve", "editedItems": {}}, 400),
        ({"approvalId": "appr_0", "decision": "approve"}, 404),
    ],
)
async def test_a_response_that_says_nothing_usable_is_refused(world: World, body, status: int):
    """400 for the body before 404 for the approval."""
    assert (await world.post(RESPOND, body)).status_code == status


async def test_only_approvers_decide(world: World):
    """Who sees the approval but is no approver is 403 at each door, a stranger 404. AP-10."""
    _, id = await world.paused(approvers=("bob@example.org",))
    bob, eve = await world.account("bob"), await world.account("eve")
    strangers = bearer((await world.new_key(eve)).text)
    link = f"{RESPOND}/{id}/approve?confirm=1"
    body = {"approvalId": id, "decision": "approve"}
    for headers, status in ((world.bearer, 403), (strangers, 404)):
        answers = [
            await world.post(f"/api/v1/approvals/{id}/approve", headers=headers),
            await world.post(RESPOND, body, headers=headers),
            await world.get(link, headers=headers),
        ]
        assert [answer.status_code for answer in answers] == [status] * 3
    approver = bearer((await world.new_key(bob)).text)
    assert (await world.get("/api/v1/approvals", headers=approver)).json()["total"] == 1
    assert (await world.post(RESPOND, body, headers=approver)).status_code == 200


async def test_who_may_edit_may_decide(world: World):
    """Where no approvers are named, an EDIT share makes one; a lesser one does not. AP-10."""
    execution, id = await world.paused()
    bob = await world.account("bob")
    headers = bearer((await world.new_key(bob)).text)
    workflow = (await world.get(f"/api/v1/executions/{execution}")).json()["workflowId"]
    url = f"/api/v1/approvals/{id}/approve"
    await workflows.share_workflow(world.services, OPERATOR, workflow, bob.id, Permission.EXECUTE)
    assert (await world.post(url, headers=headers)).status_code == 404
    await workflows.share_workflow(world.services, OPERATOR, workflow, bob.id, Permission.EDIT)
    assert (await world.post(url, headers=headers)).status_code == 200


async def test_approvals_are_filtered_by_status(world: World):
    """Every state is a filter; an unknown one is 400, an empty one none."""
    _, id = await world.paused()
    await world.post(f"/api/v1/approvals/{id}/approve")
    for query, total in (("status=APPROVED", 1), ("status=PENDING", 0), ("status=", 1)):
        assert (await world.get(f"/api/v1/approvals?{query}")).json()["total"] == total
    assert (await world.get("/api/v1/approvals?status=approved")).status_code == 400


async def test_every_decision_is_in_the_audit_log(world: World):
    """Granted with its rows, comment and version; refused with the reason. AP-27, AL-3."""
    bob, _ = await world.account("bob"), await world.account("eve")
    bobs, key = await world.new_key(bob), world.key.text
    execution, id = await world.paused(approvers=("ann@example.org",))
    workflow = (await world.get(f"/api/v1/executions/{execution}")).json()["workflowId"]
    await workflows.share_workflow(world.services, OPERATOR, workflow, bob.id, Permission.EDIT)
    url, link = f"/api/v1/approvals/{id}", f"/api/webhook-trigger/approval/{id}/approve?confirm=1"
    body = {"approvalId": id, "decision": "approve", "expectedItemsHash": "other"}
    assert (await world.post("/api/v1/approvals/appr_0/approve")).status_code == 404
    assert (await world.post(RESPOND, body)).status_code == 409
    for target in (f"{url}/reject", link):
        method = "GET" if target is link else "POST"
        answer = await world.http.request(method, target, headers=bearer(bobs.text))
        assert answer.status_code in (403, 404)
    granted = await world.post(f"{url}/approve", {"comment": f"my key is {key}"})
    assert granted.status_code == 200
    assert (await world.post(f"{url}/reject")).status_code == 404
    assert (await world.get(link)).status_code == 409
    entries = await read_audit(world.services, EpochMs(0), None, 100)
    found = [one for one in entries if one.event.startswith("approval.")]
    refused = "forbidden" if answer.status_code == 403 else "not_found"
    assert [(one.event[9:], one.reason) for one in found] == [
        ("approve", "not_found"), ("approve", "items_changed"), ("reject", refused),
        ("approve", refused), ("approve", None), ("reject", "already_decided"),
        ("approve", "already_decided"),
    ]  # fmt: skip
    assert {one.target for one in found[1:]} == {id}
    assert [(one.account_id, one.key_id) for one in found[2:4]] == [(bob.id, bobs.key.id)] * 2
    details = found[4].details
    assert details is not None
    assert (details["itemsHash"], details["workflowVersion"]) == (granted.json()["itemsHash"], 1)
    assert str(details["comment"]).startswith("my key is ")
    assert key not in repr(entries)
    assert [one.execution_id for one in found] == [None] + [execution] * 6
    async with world.services.store.view() as view:
        records = [one.record for one in await view.audit.of_execution(execution)]
    rows = {"refunds": ROWS}
    (record,) = (json.loads(text) for text in records if text is not None)
    assert (record["rowsBefore"], record["rowsAfter"], record["decision"]) == (
        rows,
        rows,
        "approve",
    )


async def test_a_decision_about_many_rows_leaves_the_loop_to_others(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """
    Reading, checking, hashing and writing two thousand rows are done in other threads; a small
    decision is done at once. Of two such at a time one decides.
    """
    object.__setattr__(world.services, "offload", asyncio.to_thread)
    here, seen = get_ident(), dict[str, set[bool]]()

    def noting(module: Any, name: str) -> None:
        work = getattr(module, name)

        def noted(*arguments: Any) -> Any:
            seen.setdefault(name, set()).add(get_ident() == here)
            return work(*arguments)

        monkeypatch.setattr(module, name, noted)

    for module, name in (
        (request_body, "parse_object"),
        (request_body, "refuse_repeated_keys"),
        (deciding, "decide"),
        (deciding, "audit_of"),
        (handlers, "approval_detail"),
        (handlers, "dump_json"),
    ):
        noting(module, name)
    rows = [{"id": n, "amount": n, "note": "x" * 20} for n in range(2_000)]
    _, id = await world.paused(rows=rows)
    rows[7]["amount"] = 8
    body = {"editedItems": {"refunds": rows}}
    url = f"/api/v1/approvals/{id}/approve"
    seen.clear()
    answers = await asyncio.gather(world.post(url, body), world.post(url, body))
    assert sorted(answer.status_code for answer in answers) == [200, 404]
    assert (len(seen), {here for one in seen.values() for here in one}) == (6, {False})
    await world.run()
    _, id = await world.paused()
    seen.clear()
    assert (await world.post(f"/api/v1/approvals/{id}/approve")).status_code == 200
    assert seen.pop("decide") == seen.pop("approval_detail") == {True}
    assert "dump_json" not in seen
