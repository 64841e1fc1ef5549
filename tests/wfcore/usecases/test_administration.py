"""What operators ask for, on the host or from elsewhere: the documents that they get. AC-8."""

import json
from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import InvalidDefinition, InvalidInput, LinkOver, NotFound, Unauthenticated
from wfcore.model.access import AccountStatus, Permission, Principal, Scope, Tier
from wfcore.model.node import Node
from wfcore.model.webhook import Scheme, WebhookStatus
from wfcore.rules.auth.signed_links import id_of
from wfcore.rules.definition.written import read_definition_json
from wfcore.time import EpochMs
from wfcore.usecases.accounts.accounts import find_account
from wfcore.usecases.accounts.sessions import session_of, sign_in_by_link
from wfcore.usecases.administration import (
    accounts,
    approvals,
    executions,
    server,
    webhooks,
    workflows,
)
from wfcore.usecases.administration.operator import Operator
from wfcore.usecases.audit.auditing import Origin, read_audit
from wfcore.usecases.nodes import announce_node

from .conftest import World, code, review

ANN, BOB = "ann@example.org", "bob@example.org"
HERE = Origin(path="command line", request_id="req_7")
CODE = {"name": "a", "kind": "code", "language": "bash", "source": ":"}
FLOW = json.dumps({"name": "Flow", "steps": [CODE]})


@pytest.fixture
def at(world: World) -> Operator:
    return Operator(world.services, read_definition_json, HERE, "https://flows.example.org")


@pytest.fixture
async def far(at: Operator, world: World) -> Operator:
    """The operator of a key of scope ADMIN, from elsewhere."""
    await accounts.create_account(at, "root@example.org", operator=True)
    root = Principal(await find_account(world.services, "root@example.org"))
    return evolve(at, origin=evolve(HERE, operator=root))


async def test_a_key_from_elsewhere_makes_no_operator(
    at: Operator, far: Operator, world: World
) -> None:
    """Neither with a password nor without, by a mark, a name in the settings or a status. AC-10."""
    assert not far.on_host
    policy = evolve(world.services.policy, operators=frozenset({"named@example.org"}))
    of_settings = evolve(far, services=evolve(world.services, policy=policy))
    refused = r"^operator: an operator is made, or activated, on the server's host alone"
    for secret in (None, "correct horse"):
        with pytest.raises(InvalidInput, match=refused):
            await accounts.create_account(far, "eve@example.org", password=secret, operator=True)
        with pytest.raises(InvalidInput, match=refused):
            await accounts.create_account(of_settings, "named@example.org", password=secret)
    await accounts.create_account(far, BOB)
    for secret in (None, "correct horse"):
        with pytest.raises(InvalidInput, match=refused):
            await accounts.set_account(far, BOB, operator=True, password=secret)
    await accounts.set_account(far, BOB, status=AccountStatus.DISABLED)
    await accounts.set_account(at, BOB, operator=True)
    with pytest.raises(InvalidInput, match=refused):
        await accounts.set_account(far, BOB, status=AccountStatus.ACTIVE)
    await accounts.set_account(at, BOB, status=AccountStatus.ACTIVE)
    changed = await accounts.set_account(far, BOB, Tier.TEAM, operator=True)
    assert (changed["plan"], changed["operator"]) == ("TEAM", True)


async def test_a_key_from_elsewhere_leaves_no_way_in_as_an_operator(
    at: Operator, far: Operator, world: World
) -> None:
    """It gives an operator no password and no link; what it gave before ends. AC-10."""
    secret = "correct horse"
    bob = (await world.account(BOB)).account
    link: Any = await accounts.issue_login_link(far, BOB)
    opened: Any = await accounts.issue_login_link(far, BOB)
    token = (await sign_in_by_link(world.services, opened["url"].split("/in/")[1], HERE)).token
    assert (await session_of(world.services, token)).account.id == bob.id
    await accounts.set_account(at, BOB, operator=True)
    with pytest.raises(LinkOver):
        await sign_in_by_link(world.services, link["url"].split("/in/")[1], HERE)
    with pytest.raises(Unauthenticated):
        await session_of(world.services, token)
    with pytest.raises(InvalidInput, match=r"^password: an operator gets one on the server's host"):
        await accounts.set_account(far, BOB, password=secret)
    with pytest.raises(InvalidInput, match=r"^account: an operator gets a link on"):
        await accounts.issue_login_link(far, BOB)
    assert await accounts.issue_login_link(at, BOB)
    await accounts.set_account(far, BOB, operator=False, password=secret)


async def test_an_account_is_made_changed_and_listed(at: Operator, world: World) -> None:
    """By its email as by its id; each change is noted as the operator's."""
    made: Any = await accounts.create_account(at, ANN, operator=True)
    await accounts.create_account(at, BOB, Tier.PRO)
    assert (made["email"], made["plan"], made["operator"]) == (ANN, "FREE", True)
    changed = await accounts.set_account(
        at, ANN, Tier.TEAM, AccountStatus.LOCKED, operator=False, language="de"
    )
    assert changed == {**made, "plan": "TEAM", "status": "LOCKED", "operator": False}
    with pytest.raises(InvalidInput, match=r"^account: no account has the id or email 'eve'; wfc"):
        await accounts.set_account(at, "eve", Tier.TEAM)
    found: Any = await accounts.list_accounts(at, limit=1)
    (bob,) = found["items"]
    assert (bob["email"], bob["createdAt"], found["total"]) == (BOB, world.clock.now(), 2)
    for wrong in (0, 10_001):
        with pytest.raises(InvalidInput, match=r"^limit: must be from 1 to 10000$"):
            await accounts.list_accounts(at, limit=wrong)
    entries = await read_audit(world.services, EpochMs(0), None, 99)
    assert {(one.event, one.request_id) for one in entries} == {
        ("account.create", "req_7"),
        ("account.set", "req_7"),
    }


async def test_keys_and_links_are_shown_once(at: Operator, world: World) -> None:
    """The text of a key when it is made or rotated, never in a list; a link as an address."""
    id = (await world.account(ANN)).account.id
    made: Any = await accounts.create_key(at, ANN, "erp", [Scope.WORKFLOW_READ], 60_000)
    turned: Any = await accounts.rotate_key(at, made["id"], -5)
    assert made["apiKey"] != turned["apiKey"]
    listed: Any = await accounts.list_keys(at, id)
    (shown,) = listed["items"]
    assert ("apiKey" in shown, shown["name"], listed["email"]) == (False, "erp", ANN)
    assert shown["expiresAt"] == world.clock.now() + 60_000
    link: Any = await accounts.issue_login_link(at, ANN, minutes=1)
    assert link["url"].startswith("https://flows.example.org/in/")
    await accounts.set_secret(at, ANN, "TOKEN", "hunter2")
    secrets: Any = await accounts.list_secrets(at, ANN)
    assert secrets["items"] == [{"name": "TOKEN", "updatedAt": world.clock.now()}]
    assert await accounts.delete_secret(at, ANN, "TOKEN") == {"ok": True}
    assert await accounts.list_secrets(at, ANN) == {"items": [], "total": 0}
    with pytest.raises(NotFound, match=r"^Session not found$"):
        await accounts.end_sessions(at, ANN, "none")
    assert await accounts.end_sessions(at, ANN) == {"ok": True}


async def test_a_workflow_is_found_by_its_only_name(at: Operator, world: World) -> None:
    """Of two with one name the id is asked for, and both are given."""
    for owner in (ANN, BOB):
        await world.account(owner)
    first: Any = await workflows.apply_workflow(at, ANN, FLOW)
    found: Any = await workflows.read_workflow(at, "Flow")
    assert (found["id"], found["stepNames"], found["shares"]) == (first["id"], ["a"], [])
    warned = evolve(at, warnings=lambda definition: (definition.name,))
    second: Any = await workflows.apply_workflow(warned, BOB, FLOW)
    assert (second["name"], second["version"], second["warnings"]) == ("Flow", 1, ["Flow"])
    with pytest.raises(InvalidInput) as several:
        await workflows.read_workflow(at, "Flow")
    said = str(several.value)
    assert said.startswith("workflow: several are named 'Flow'; give an id: ")
    assert (first["id"] in said, second["id"] in said) == (True, True)
    with pytest.raises(InvalidInput, match=r"^workflow: none has the id or name 'None'; wfcore wo"):
        await workflows.read_workflow(at, "None")
    everybody_s: Any = await workflows.list_workflows(at)
    assert [one["ownerEmail"] for one in everybody_s["items"]] == [ANN, BOB]
    one: Any = await workflows.list_workflows(at, limit=1)
    assert (len(one["items"]), one["total"]) == (1, 2)
    bob_s: Any = await workflows.list_workflows(at, owner=BOB)
    assert [one["id"] for one in bob_s["items"]] == [second["id"]]


async def test_a_webhook_has_one_way_to_be_sure_of_its_sender(at: Operator, world: World) -> None:
    """A key, a secret, or none by the operator's word; never two. WH-3."""
    ann = await world.account(ANN)
    await world.workflow(ann, code("a"))
    for wrong in ({}, {"open": True, "scheme": Scheme.GITHUB}, {"key": "k", "secret": "s" * 40}):
        with pytest.raises(InvalidInput, match=r"^key: give exactly one of key, secret \(or sch"):
            await webhooks.create_webhook(at, "flow", "h", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^key: no key has the id 'k'; wfcore key list"):
        await webhooks.create_webhook(at, "flow", "h", key="k")
    made: Any = await webhooks.create_webhook(at, "flow", "h", scheme=Scheme.GITHUB)
    assert made["triggerUrl"] == f"https://flows.example.org/api/webhooks/{made['id']}/trigger"
    turned: Any = await webhooks.set_webhook(at, made["id"], new_secret=True)
    assert len({None, made["secretKey"], turned["secretKey"]}) == 3
    started: list[Any] = [await webhooks.try_webhook(at, made["id"]) for _ in range(2)]
    told: Any = await webhooks.list_deliveries(at, made["id"], limit=1)
    (last,) = told["items"]
    assert (last["executionId"], told["total"]) == (started[1]["executionId"], 2)
    off: Any = await webhooks.set_webhook(at, made["id"], WebhookStatus.DISABLED)
    assert (off["status"], off.get("secretKey")) == ("DISABLED", None)
    listed: Any = await webhooks.list_webhooks(at)
    (shown,) = listed["items"]
    assert (shown["workflowName"], shown["ownerEmail"], listed["total"]) == ("flow", ANN, 1)
    assert await webhooks.delete_webhook(at, made["id"]) == {"ok": True, "webhookId": made["id"]}


async def test_an_operator_decides_and_delegates(at: Operator, world: World) -> None:
    """For an approver alone another one is named; rows and comments are taken as they are."""
    ann = await world.account(ANN)
    run_id = await world.start(
        ann, await world.workflow(ann, review(approvers=(BOB,), delegable=True))
    )
    await world.take()
    listed: Any = await approvals.list_approvals(at, workflow="flow", execution=run_id)
    (one,) = listed["items"]
    assert (one["workflowName"], listed["total"]) == ("flow", 1)
    none: Any = await approvals.list_approvals(at, since=world.clock.now() + 1)
    assert none == {"items": [], "total": 0}
    until = world.clock.now() + 1_000
    with pytest.raises(
        InvalidInput, match=rf"^by: eve@example.org is not an approver of {one['id']}"
    ):
        await approvals.delegate(at, one["id"], "eve@example.org", "dan@example.org", until)
    await approvals.delegate(at, one["id"], f" {BOB} ", "dan@example.org", until)
    done: Any = await approvals.reject(at, one["id"], "too much")
    assert (done["status"], done["comment"]) == ("REJECTED", "too much")
    assert done == await approvals.read_approval(at, one["id"])


async def test_a_share_is_shown_with_what_it_allows(at: Operator, world: World) -> None:
    """Until it is taken back."""
    bob = (await world.account(BOB)).account
    id = await world.workflow(await world.account(ANN), code("a"))
    share = {"workflowId": id, "accountId": bob.id, "permission": "EXECUTE"}
    assert await workflows.share_workflow(at, "flow", BOB, Permission.EXECUTE) == share
    shown: Any = await workflows.read_workflow(at, "flow")
    assert shown["shares"] == [share]
    await workflows.share_workflow(at, "flow", BOB)
    shown = await workflows.read_workflow(at, "flow")
    assert shown["shares"] == []


async def test_executions_are_started_and_listed(at: Operator, world: World) -> None:
    """With who started them; of more than are listed it is said how many there are."""
    await world.workflow(await world.account(ANN), code("a"))
    ids = []
    for _ in range(2):
        started: Any = await executions.start_execution(at, "flow", {})
        ids.append(started["executionId"])
        world.clock.advance(1)
    for limit in (1, 2):
        found: Any = await executions.list_executions(at, workflow="flow", limit=limit)
        assert [one["executionId"] for one in found["items"]] == ids[::-1][:limit]
        assert (found["items"][0]["startedBy"]["email"], found["total"]) == (ANN, 2)
    with pytest.raises(InvalidInput, match=r"^inputs: must be an object of strings$"):
        await executions.start_execution(at, "flow", {"a": 1})  # type: ignore[dict-item]


async def test_the_server_says_what_it_tells_and_what_it_keeps(at: Operator, world: World) -> None:
    """A test of a channel, the nodes, and whether the audit log is whole."""
    policy = evolve(world.services.policy, channels=frozenset({"mail"}))
    here = evolve(at, services=evolve(world.services, policy=policy))
    made: Any = await server.try_notice(here, "mail", BOB)
    listed: Any = await server.list_notices(here, limit=1)
    assert ([one["id"] for one in listed["items"]], made["to"]) == ([made["id"]], BOB)
    await announce_node(world.services, Node("w1", "here", 3, EpochMs(0)))
    drained: Any = await server.drain_node(at, "w1")
    assert drained == {
        "id": "w1",
        "state": "draining",
        "role": "worker",
        "version": "",
        "pid": 0,
        "address": None,
        "seenAt": server._instant(world.services.store.now()),
        "host": "here",
        "places": 3,
        "startedAt": "1970-01-01 00:00:00Z",
        "draining": True,
        "able": None,
    }
    assert await server.list_nodes(at) == {"items": [drained], "total": 1}
    given: Any = {"id": id_of(world.services.signing_key), "madeAt": None, "signs": True}
    assert await server.list_signing_keys(at) == {"items": [given], "total": 1}
    made: Any = await server.rotate_signing_key(at)
    older = {**given, "signs": False}
    assert await server.list_signing_keys(at) == {"items": [made, older], "total": 2}
    gone: Any = await server.retire_signing_key(at, given["id"])
    assert gone == {"id": given["id"], "retired": True}
    assert await server.list_signing_keys(at) == {"items": [made], "total": 1}
    checked: Any = await server.verify_audit(at)
    assert (checked["ok"], checked["first"], checked["last"]) == (True, 1, 4)
    entries: Any = await server.read_entries(at, 0)
    assert [one["event"] for one in entries["items"]] == [
        "notice.test",
        "node.drain",
        "signing.rotate",
        "signing.retire",
    ]


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({"variables": {"k": {"secret": True, "default": "***"}}}, ["variables.k.default"]),
        ({"steps": [{**CODE, "timeout": 0}]}, ["steps[0].timeout"]),
        (
            {
                "triggers": [{"kind": "SCHEDULE", "cron": "0 9 * * *"}],
                "steps": [{**CODE, "secrets": ["TOKEN"]}],
            },
            ["steps[0].secrets[0]", "triggers[0]"],
        ),
    ],
)
async def test_a_preview_refuses_what_applying_refuses(
    at: Operator, more: dict[str, Any], paths: list[str]
) -> None:
    """A dry run that says yes is not followed by a no: both name the same fields, all at once."""
    await accounts.create_account(at, ANN)
    text = json.dumps({"name": "Flow", "steps": [CODE], **more})
    for either in (workflows.preview_workflow, workflows.apply_workflow):
        with pytest.raises(InvalidDefinition) as refused:
            await either(at, ANN, text)
        assert [one.path for one in refused.value.problems] == paths


async def test_long_texts_are_previewed_within_a_bound(
    at: Operator, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines take up to their square to compare: it is done aside, and never of too many."""
    await accounts.create_account(at, ANN)
    aside: list[str] = []

    async def offload(work: Any) -> Any:
        aside.append(getattr(work.func, "__name__", ""))
        return work()

    services = evolve(world.services, offload=offload)
    long = [" " * (number * 7 % 130) for number in range(2_500)]
    await workflows.apply_workflow(at, ANN, "\n".join([*long, FLOW]))
    text = "\n".join([*reversed(long), FLOW.replace(":", ": ")])
    text = text.replace('"a"', '"b"')
    monkeypatch.setattr("wfcore.rules.definition.changes.SequenceMatcher", None)
    found: Any = await workflows.preview_workflow(evolve(at, services=services), ANN, text)
    assert found["change"] == "changed"
    marks = [line[:1] for line in found["difference"].splitlines()[2:]]
    assert {mark: marks.count(mark) for mark in "@-+"} == {"@": 1, "-": 2_501, "+": 2_501}
    assert "_compared" in aside


async def test_what_an_owner_can_have_no_more_is_refused_unchanged_too(at: Operator) -> None:
    """Applying it again would say that its schedule goes on: a preview and applying both refuse."""
    await accounts.create_account(at, ANN, Tier.PRO)
    nightly = {"kind": "SCHEDULE", "cron": "0 9 * * *"}
    text = json.dumps({"name": "Flow", "steps": [CODE], "triggers": [nightly]})
    await workflows.apply_workflow(at, ANN, text)
    await accounts.set_account(at, ANN, Tier.FREE)
    for either in (workflows.preview_workflow, workflows.apply_workflow):
        with pytest.raises(InvalidDefinition, match="schedules need the plan PRO"):
            await either(at, ANN, text)
