"""Evidence of an execution: complete, without secrets, and checked by anybody."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import Principal
from wfcore.model.approval import DecisionSource
from wfcore.model.event import Anchor, AuditChain
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Escalation, Variable
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.rules.audit.chain import BEGINNING, entry_text, extended
from wfcore.rules.audit.evidence import (
    Unfit,
    anchor_misfit,
    links_of,
    proved,
    read_evidence,
    sealed,
    untold,
)
from wfcore.rules.canonical import canonical, digest
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import DAY, HOUR, DurationMs, EpochMs
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.approvals.expiry import remind_due
from wfcore.usecases.audit.auditing import UNKNOWN, read_audit
from wfcore.usecases.audit.evidence import audit_anchor, check_audit, write_evidence
from wfcore.usecases.executions.executions import cancel_execution
from wfcore.usecases.services import Policy
from wfcore.usecases.upkeep.retention import delete_expired

from .conftest import World, code, review
from .test_stages import TWO, board, delegate, mail

ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]
EDITED = [{"id": 2, "amount": 5}]
SECRET = "hunter2-and-more"


async def decided(world: World, who: Principal) -> str:
    """An execution with a secret whose rows were edited and approved; others ran beside it."""
    secret = Variable("token", secret=True, has_default=True, default=SECRET)
    workflow = await world.workflow(who, review(ROWS), code("after"), variables={"token": secret})
    id = await world.start(who, workflow)
    await world.take()
    (approval,) = await approvals.approvals_of(world.services, who, id)
    await keep(world.services.store, make.audit_entry("aud_other1"))
    asked = Decide(approval.id, Approve({"rows": EDITED}), DecisionSource.API, f"say {SECRET}")
    await deciding.decide_approval(world.services, who, asked)
    with pytest.raises(Conflict):
        await deciding.decide_approval(world.services, who, asked)
    await keep(world.services.store, make.audit_entry("aud_other2"))
    lease, _ = await world.take()
    await world.finish(lease, "after", {"echo": SECRET})
    return id


async def written(world: World, id: str, *anchors: Anchor) -> str:
    text = await write_evidence(world.services, id, anchors, UNKNOWN)
    assert untold(json.loads(text)) is None
    return text


def refusal(text: str) -> str:
    with pytest.raises(Unfit) as unfit:
        read_evidence(text)
    return str(unfit.value)


async def test_it_holds_what_happened(world: World) -> None:
    """AL-6: definition, inputs, results, rows before and after, who decided and who may not."""
    ann = await world.account()
    id = await decided(world, ann)
    text = await written(world, id)
    document = read_evidence(text)
    assert document["execution"]["status"] == "COMPLETED"
    assert document["execution"]["inputs"] == {"token": "***"}
    assert document["execution"]["stepResults"]["after"]["output"] == {"echo": "***"}
    assert document["definition"]["workflowVersion"] == 1
    (approval,) = document["approvals"]
    assert approval["history"][-1]["rowsAfter"] == {"rows": EDITED}
    links = document["audit"]["links"]
    own = [link for link in links if not isinstance(link, str)]
    assert [(link["entry"]["event"], link["entry"].get("reason")) for link in own] == [
        ("approval.approve", None),
        ("approval.approve", "already_decided"),
    ]
    assert own[0]["record"]["rowsBefore"] == {"rows": ROWS}
    assert own[0]["record"]["rowsAfter"] == {"rows": EDITED}
    assert own[0]["entry"]["details"]["itemsHash"] == approval["itemsHash"]
    assert SECRET not in text
    assert "aud_other" not in text
    entries = await read_audit(world.services, make.NOW - DAY, None, 100)
    (told,) = (entry for entry in entries if entry.event == "evidence.write")
    assert told.details == {"sha256": digest(text)}


async def test_it_outlives_the_execution(world: World) -> None:
    """AL-3, AL-5: when retention has taken the execution, the decision and its rows are there."""
    ann = await world.account()
    id = await decided(world, ann)
    world.clock.advance(31 * DAY)
    await delete_expired(world.services)
    document = read_evidence(await written(world, id))
    assert (document["execution"], document["approvals"]) == (None, [])
    (link, *_) = document["audit"]["links"]
    assert link["record"]["rowsAfter"] == {"rows": EDITED}
    assert link["entry"]["details"]["workflowVersion"] == 1
    world.clock.advance(60 * DAY)
    while (await delete_expired(world.services)).more:
        pass
    assert (await check_audit(world.services)).fault is None
    with pytest.raises(NotFound):
        await written(world, "exec_unknown")


async def test_what_time_alone_decides_is_on_record_too(world: World) -> None:
    """AP-27, AL-3: an approval that expired is an entry with its rows, of nobody."""
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, review(ROWS)))
    await world.take()
    world.clock.advance(2 * DAY)
    (approval,) = await approvals.approvals_of(world.services, ann, id)
    document = read_evidence(await written(world, id))
    assert document["execution"]["status"] == "CANCELLED"
    (link,) = document["audit"]["links"]
    entry = link["entry"]
    assert (entry["event"], entry["target"]) == ("approval.expire", approval.id)
    assert "accountId" not in entry
    assert link["record"]["rowsAfter"] == {"rows": ROWS}


async def test_audit_entries_are_kept_no_shorter_than_executions(world: World) -> None:
    """AL-5: a longer retention of executions is one of their audit entries, too."""
    services = evolve(
        world.services,
        policy=Policy(keep_executions_ms=DurationMs(200 * DAY), keep_audit_ms=DurationMs(90 * DAY)),
    )
    await keep(services.store, make.audit_entry("aud_1", at=world.clock.now()))
    world.clock.advance(199 * DAY)
    await delete_expired(services)
    assert (await check_audit(services)).entries == 1
    world.clock.advance(2 * DAY)
    await delete_expired(services)
    (left,) = await read_audit(services, EpochMs(0), None, 9)
    assert (left.event, left.details) == ("audit.trim", None)
    assert (await check_audit(services)).fault is None


async def test_one_without_entries_is_evidence_too(world: World) -> None:
    """AL-6: of what came by API and asked nobody, there is what it did."""
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, code("a")))
    document = read_evidence(await written(world, id))
    assert document["audit"]["links"] == []
    await cancel_execution(world.services, ann, id)
    document = read_evidence(await written(world, id))
    events = [link["entry"]["event"] for link in document["audit"]["links"]]
    assert events == ["evidence.write", "execution.cancel"]


async def test_it_reaches_an_anchor(world: World) -> None:
    """AL-7: with an anchor kept elsewhere it is seen whether its entries are those of the log."""
    ann = await world.account()
    before = await audit_anchor(world.services)
    id = await decided(world, ann)
    after = await audit_anchor(world.services)
    document = read_evidence(await written(world, id, before, after))
    assert anchor_misfit(document, before) is anchor_misfit(document, after) is None
    assert anchor_misfit(document, evolve(after, hash="0" * 64)) is not None
    assert anchor_misfit(document, evolve(after, chain="another")) is not None
    misfit = f"it shows entries 0 to {after.number}, not entry 99 of the anchor; write it anew"
    assert anchor_misfit(document, evolve(after, number=99)) == misfit
    for wrong in (evolve(after, number=99), evolve(after, chain="another")):
        with pytest.raises(InvalidInput, match="the log reaches from"):
            await written(world, id, wrong)


def evidence(
    items: list[Any] = EDITED,
    order: Sequence[int] = (0, 1, 2),
    approvals: Sequence[Any] = (),
    files: Sequence[Sequence[str]] = (),
    answers: Mapping[str, Any] | None = None,
) -> str:
    """
    Evidence with a decision for *items*, *files* and *answers* in an approval, another entry, one
    of another execution, all in that *order*, and further *approvals*.
    """
    rows: JsonObject = {"rowsBefore": {"rows": ROWS}, "rowsAfter": {"rows": EDITED}}
    given = {"attachments": files, "answers": answers or {}}
    more = {name: value for name, value in given.items() if value}
    record = canonical({**rows, **more, "status": "APPROVED"})
    whole = {"groups": {"rows": items}, **given}
    agreed = digest(canonical(whole if more else {"rows": items}))
    shown = [dict(zip(("stepName", "name", "sha256"), file, strict=True)) for file in files]
    entries = (
        make.audit_entry(
            "aud_1",
            event="approval.approve",
            target="appr_1",
            execution_id="e1",
            details={"itemsHash": agreed},
            record_hash=digest(record),
        ),
        make.audit_entry("aud_2", execution_id="e2"),
        make.audit_entry("aud_3", execution_id="e1"),
    )
    records = (record, None, None)
    texts = [(entry_text(entries[at]), records[at]) for at in order]
    _, linked = extended(AuditChain("c1", BEGINNING, BEGINNING), texts)
    point = {"number": 3, "hash": linked[-1].hash}
    return sealed(
        {
            "executionId": "e1",
            "execution": {"inputs": {"a": 1.5}},
            "definition": None,
            "approvals": [
                {
                    "id": "appr_1",
                    "status": "APPROVED",
                    "itemsHash": agreed,
                    "reviewableGroups": [{"name": "rows", "items": EDITED}],
                    "attachments": shown,
                    "answers": given["answers"],
                },
                *approvals,
            ],
            "audit": {
                "chain": "c1",
                "after": {"number": 0, "hash": BEGINNING.hash},
                "end": point,
                "links": links_of("e1", linked),
            },
        }
    )


@pytest.fixture(scope="module")
def text() -> str:
    return evidence()


def test_a_document_has_one_text(text: str) -> None:
    """AL-6: members in alphabetical order, one blank for each level, a line end at the end."""
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=1) + "\n"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_decision_is_held_to_its_rows_wherever_it_stands(order: tuple[int, ...]) -> None:
    """AL-6: a chain that was made well, of an entry whose record has other rows than it names."""
    read_evidence(evidence(order=order))
    number = order.index(0) + 1
    says = f"the rows of audit entry {number} are not those of its itemsHash"
    assert refusal(evidence(ROWS, order)) == says


FILES = [["make", "list.csv", "ab" * 32]]


@pytest.mark.parametrize("files", [[], FILES])
@pytest.mark.parametrize("answers", [{}, {"amount": 1}])
def test_files_and_answers_are_held_to_the_decision(files: list[Any], answers: JsonObject) -> None:
    """AL-6, AP-29, AP-30: what was agreed to beside the rows is that of the decision's entry."""
    text = evidence(files=files, answers=answers)
    (approval,) = read_evidence(text)["approvals"]
    assert approval.get("answers", {}) == answers
    says = "the rows of approval appr_1 are not those of its itemsHash"
    changes: list[Any] = [lambda d: d["approvals"][0].update(answers={"amount": 2})]
    for name in ("stepName", "name", "sha256") if files else ():
        changes.append(lambda d, name=name: d["approvals"][0]["attachments"][0].update({name: "x"}))
    for change in changes:
        assert refusal(reseal(text, change)) == says


def test_an_open_approval_needs_no_decision() -> None:
    """AL-6: it is shown with its rows, which are those of its hash."""
    shown = {"id": "appr_2", "status": "PENDING", "reviewableGroups": [], "attachments": []}
    read_evidence(evidence(approvals=[{**shown, "itemsHash": digest(canonical({}))}]))
    wrong = evidence(approvals=[{**shown, "itemsHash": digest(canonical({"rows": []}))}])
    assert refusal(wrong) == "the rows of approval appr_2 are not those of its itemsHash"


@given(st.data())
def test_any_change_of_one_character_is_found(text: str, data: st.DataObject) -> None:
    """AL-6: another character, one more or one less, anywhere, blanks and line ends included."""
    read_evidence(text)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from(' \n"{}[],:0179aefx\\') | st.characters(max_codepoint=300))
    changes = (text[:at] + text[at + 1 :], text[:at] + letter + text[at:])
    for changed in (*changes, text[:at] + letter + text[at + 1 :]):
        if changed != text:
            assert refusal(changed)


def reseal(text: str, change: Callable[[Any], object]) -> str:
    """What somebody writes who knows how the outer hash is made."""
    document = json.loads(text)
    change(document)
    return sealed({name: value for name, value in document.items() if name != "hash"})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["audit"]["links"][0]["entry"].update(ip="1.2.3.4"), "audit entry 1 "),
        (lambda d: d["audit"]["links"][0].update(previous="1" * 64), "audit entry 1 "),
        (
            lambda d: d["audit"]["links"][0]["record"]["rowsAfter"].update(rows=ROWS),
            "the record of audit entry 1 ",
        ),
        (lambda d: d["audit"]["links"][0].pop("record"), "the record of audit entry 1 "),
        (lambda d: d["audit"]["links"].pop(0), "audit entry 2 "),
        (lambda d: d["audit"]["links"].pop(), "an audit entry of another execution"),
        (lambda d: d["audit"]["links"].append("0" * 64), "an audit entry of another execution"),
        (lambda d: d["audit"]["links"].reverse(), "audit entry 1 "),
        (lambda d: d["audit"]["links"].__setitem__(1, "0" * 64), "audit entry 3 "),
        (lambda d: d["audit"]["end"].update(number=4), "an audit entry of another execution"),
        (lambda d: d.update(executionId="e2"), "audit entry 1 is of another execution"),
        (
            lambda d: d["approvals"][0]["reviewableGroups"][0].update(items=ROWS),
            "the rows of approval appr_1 ",
        ),
        (lambda d: d["approvals"][0].update(itemsHash="0" * 64), "the rows of approval appr_1 "),
        (lambda d: d["approvals"][0].update(status="REJECTED"), "approval appr_1 was APPROVED "),
        (lambda d: d["audit"].pop("chain"), "it is no evidence of "),
        (lambda d: d["audit"]["links"].__setitem__(0, 5), "it is no evidence of "),
    ],
)
def test_a_change_with_a_new_hash_is_found_by_the_chain(
    text: str, change: Callable[[Any], object], says: str
) -> None:
    """AL-6: who works the outer hash out anew has still changed entries, rows or their order."""
    assert refusal(reseal(text, change)).startswith(says)


def test_other_files_are_no_evidence() -> None:
    """AL-6: whatever a file holds, the answer says what it should be."""
    for text in ("", "5", "[]", "{}", '{"format": "wfcore-evidence/2"}', "\ufffd", "[" * 100_000):
        assert "wfcore-evidence/1" in refusal(text)


async def test_an_anchor_kept_elsewhere_holds_the_log_to_it(world: World) -> None:
    """At its end, in the middle, and at its beginning; another hash there is a fault. AL-4."""
    anchors = [await audit_anchor(world.services)]
    for name in ("ann", "bob"):
        await world.account(f"{name}@example.org")
        anchors.append(await audit_anchor(world.services))
    assert len({one.number for one in anchors}) == 3
    assert (await check_audit(world.services, anchors)).fault is None
    for one in anchors:
        other = evolve(one, hash="1" * 64)
        fault = (await check_audit(world.services, [*anchors, other])).fault
        assert fault is not None
        assert fault.number == one.number


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: one.update(decidedBy="eve@example.org"), "was decided otherwise"),
        (lambda one: one.update(decidedAt=1), "was decided otherwise"),
        (lambda one: one.update(comment="no"), "was decided otherwise"),
        (lambda one: one.update(decisionSource="link"), "was decided otherwise"),
        *(
            (lambda one, name=name: one["history"][-1].update({name: "x"}), "line 2 in the history")
            for name in ("by", "at", "action", "source", "comment")
        ),
        (lambda one: one["history"].append({**one["history"][-1]}), "line 3 in the history"),
        (lambda one: one["history"].insert(0, {**one["history"][0], "by": "x"}), "line 2 in"),
        (lambda one: one["history"].clear(), "a line is missing"),
    ],
)
async def test_who_decided_is_what_the_entry_says(
    world: World, change: Callable[[Any], object], says: str
) -> None:
    """AL-6: in the head of the approval and in its history, for whoever works the hash out anew."""
    ann = await world.account()
    text = await written(world, await decided(world, ann))
    read_evidence(text)
    assert says in refusal(reseal(text, lambda document: change(document["approvals"][0])))


def hide(document: Any) -> None:
    """Show the entries of decisions as those of other executions."""
    links = document["audit"]["links"]
    links[:] = [one if isinstance(one, str) else digest(canonical(one["entry"])) for one in links]


def again(document: Any, **change: object) -> None:
    """Add a copy of the approval, decided by somebody else."""
    (one,) = document["approvals"]
    line = {**one["history"][-1], "by": "eve@example.org"}
    copy = {**one, "decidedBy": "eve@example.org", "history": [*one["history"][:-1], line]}
    document["approvals"].append({**copy, **change})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (again, "is there 2 times"),
        (lambda document: document["approvals"].clear(), "the approval of audit entry "),
        (lambda document: document["approvals"][0].update(id="x"), "the approval of audit entry "),
        *(
            (
                lambda document, name=name: document["approvals"][0]["history"][-1].update(
                    {name: {"rows": []}}
                ),
                "line 2 in the history",
            )
            for name in ("rowsBefore", "rowsAfter")
        ),
        (
            lambda document: document["approvals"][0]["history"][-1].update(
                rowsBefore=None, rowsAfter=None
            ),
            "line 2 in the history",
        ),
    ],
)
async def test_an_approval_is_there_once_with_the_rows_of_its_entry(
    world: World, change: Callable[[Any], object], says: str
) -> None:
    """AL-6: neither copied nor left out, nor with other rows in its history."""
    text = await written(world, await decided(world, await world.account()))
    assert says in refusal(reseal(text, change))


@pytest.mark.parametrize(
    "change",
    [
        hide,
        lambda document: again(document, id="appr_invented"),
        lambda document: again(document, id="appr_invented", history=[]),
        lambda document: again(document, id="appr_invented", status="PENDING"),
    ],
)
async def test_a_decision_without_its_entry_is_named(
    world: World, change: Callable[[Any], object]
) -> None:
    """AL-6: an entry shown as a hash alone, or an approval that never was, proves no decision."""
    text = await written(world, await decided(world, await world.account()))
    assert untold(read_evidence(text)) is None
    gap = untold(read_evidence(reseal(text, change)))
    assert gap is not None
    assert gap.startswith("no audit entry in it tells ")
    assert gap in proved(anchored=True, known=True, gap=gap)[0]


@pytest.mark.parametrize(
    ("step", "decisions"),
    [
        ({"auto_approve": "{{ execution.id }}"}, []),
        ({}, [("bob", None), ("dan", Approve({"rows": [{"id": 1}]})), ("cyd", None)]),
        ({}, [("bob", None), ("dan", Reject())]),
    ],
)
async def test_every_way_to_decide_is_told(
    world: World, step: JsonObject, decisions: Sequence[Any]
) -> None:
    """AL-6: by a rule, by several with rows edited on the way, and by rejection."""
    at = await board(world, rows=({"id": 1}, {"id": 2}), **(step or {"stages": TWO}))
    for name, decision in decisions:
        await at.decide(name, decision or Approve())
    (approval,) = read_evidence(await written(world, at.run_id))["approvals"]
    assert approval["status"] != "PENDING"


@pytest.mark.parametrize(
    ("line", "change", "says"),
    [
        *(
            (line, {name: "x"}, f"line {line + 1} in the history")
            for line in (1, 2)
            for name in ("by", "at", "action", "source", "comment")
        ),
        (1, None, "line 2 in the history"),
        (2, None, "line 3 in the history"),
    ],
)
async def test_who_let_others_decide_is_what_the_entry_says(
    world: World, line: int, change: JsonObject | None, says: str
) -> None:
    """AL-6: a delegation and an escalation that are changed or left out are named; AP-36, AP-37."""
    late = Escalation(DurationMs(HOUR), mail("dan"))
    at = await board(world, approvers=mail("bob"), delegable=True, escalate=late)
    await delegate(at, "bob", "cyd", hours=2)
    world.clock.advance(HOUR)
    assert await remind_due(world.services) == 1
    await at.decide("cyd")
    text = await written(world, at.run_id)
    history = read_evidence(text)["approvals"][0]["history"]
    acts = [one["action"] for one in history]
    assert acts == ["created", "delegated", "escalated", "approved"]

    def forge(document: Any) -> None:
        lines = document["approvals"][0]["history"]
        if change is None:
            del lines[line]
        else:
            lines[line].update(change)

    assert says in refusal(reseal(text, forge))
