"""Personal links: an approver decides without signing in, and sees nothing else. PL-1 to PL-5."""

import re
import sqlite3
from contextlib import closing
from html import unescape
from io import BytesIO
from pathlib import Path

import pytest
from attrs import evolve

from adapters_http.app import HttpConfig
from tests.support.http_world import ROWS, World, a_world, code, review
from wfcore.errors import NotFound, SignInFirst
from wfcore.model.access import OPERATOR, AccountStatus, Guest, Permission, Principal
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Links
from wfcore.ports.records import ApprovalFilter
from wfcore.ports.runtime import LeftFile, StepEnd
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.auth.signed_links import personal_token
from wfcore.time import HOUR
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.groups import create_group
from wfcore.usecases.approvals.approvals import list_approvals, read_approval
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.unit_of_work import execution_for
from wfcore.usecases.workflows.workflows import share_workflow

EVA = "eva@example.org"
HTML = {"Accept": "text/html"}
SEEN = {"purpose": "prefetch", "User-Agent": "a scanner of mail", **HTML}


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


async def approval_of(world: World, id: str) -> Approval:
    return await read_approval(world.services, OPERATOR, id)


async def asked(world: World, email: str = EVA, **step) -> tuple[Approval, str]:
    """An approval that names *email*, and the personal link."""
    _, id = await world.paused(**{"approvers": (email, "bob@example.org"), **step})
    approval = await approval_of(world, id)
    return approval, f"/a/{personal_token(world.services.signing_key, approval, email)}"


def shown(approval: Approval) -> dict[str, str]:
    """What a page sends with a decision: which rows it showed."""
    return {"expectedItemsHash": items_hash(approval)}


def ours(world: World) -> dict[str, str]:
    return {"Origin": world.url, **HTML}


async def test_a_link_opens_the_approval_for_its_approver(world: World):
    """Message and rows, whose link it is, a form; nothing that leads elsewhere. PL-1, PL-2."""
    approval, link = await asked(world)
    seen = await world.http.get(link, headers=HTML)
    assert seen.status_code == 200
    assert f"you decide as {EVA}" in seen.text
    assert approval.message in seen.text
    assert 'value="approve"' in seen.text
    assert "/inbox" not in seen.text
    assert f'data-url="{link}"' in seen.text
    rows = (await world.http.get(f"{link}/rows")).json()
    assert [row[0] for row in rows["groups"][0]["rows"]] == ROWS
    assert seen.headers["referrer-policy"] == "no-referrer"
    assert seen.headers["cache-control"] == "no-store"


async def test_a_decision_by_link_names_the_person(world: World):
    """`by` is the email, `source` is `link`; the audit log knows who, and no token. PL-1."""
    approval, link = await asked(world)
    form = {"decision": "approve", "comment": "fine", **shown(approval)}
    done = await world.http.post(link, data=form, headers=ours(world))
    assert (done.status_code, done.headers["location"]) == (303, f"{link}?decided=1")
    decided = await approval_of(world, approval.id)
    last = decided.history[-1]
    assert (last.by, last.source, last.comment) == (EVA, DecisionSource.LINK, "fine")
    assert decided.assents[0].account == f"mailto:{EVA}"
    entries = await read_audit(world.services, world.clock.now(), None, 99)
    assert f"mailto:{EVA}" in [one.account_id for one in entries if one.event == "approval.approve"]
    assert link.removeprefix("/a/") not in repr(entries)


async def test_rows_are_edited_by_link_as_by_account(world: World):
    """The editor's bodies, with the same answers: 409 for other rows than those seen, 400."""
    approval, link = await asked(world, required_approvals=2)
    rows = (await world.http.get(f"{link}/rows")).json()
    body = {"editedItems": {"refunds": [{"id": 1, "amount": 7}]}}
    stale = {**body, "expectedItemsHash": "0" * 64}
    assert (await world.http.post(f"{link}/approve", json=stale)).status_code == 409
    wrong = {**shown(approval), "editedItems": {"refunds": [{"id": 1, "amount": "x"}]}}
    assert (await world.http.post(f"{link}/approve", json=wrong)).status_code == 400
    good = {**body, "expectedItemsHash": rows["itemsHash"]}
    edited = await world.http.post(f"{link}/approve", json=good)
    assert (edited.status_code, edited.json()["approvedBy"]) == (200, [EVA])
    assert (await approval_of(world, approval.id)).groups[0].items == ({"id": 1, "amount": 7},)


@pytest.mark.parametrize("by_link_first", [True, False])
async def test_an_account_and_its_link_are_one_voice(world: World, by_link_first: bool):
    """Of a quorum of two a person with account and link is one, in either order. PL-3."""
    eva = await world.account("eva")
    key = await world.new_key(eva)
    headers = {"Authorization": f"Bearer {key.text}"}
    approval, link = await asked(world, required_approvals=2)
    api = f"/api/v1/approvals/{approval.id}/approve"
    twice = [
        lambda: world.http.post(f"{link}/approve", json=shown(approval)),
        lambda: world.http.post(api, json={}, headers=headers),
    ]
    first, second = twice if by_link_first else reversed(twice)
    assert (await first()).status_code == 200
    assert (await second()).status_code in (404, 409)
    assert (await approval_of(world, approval.id)).status is ApprovalStatus.PENDING
    agreed = ApprovalFilter(agreed=True, execution_id=approval.execution_id)
    waiting = ApprovalFilter(waiting=True, execution_id=approval.execution_id)
    for where, count in ((agreed, 1), (waiting, 0)):
        found = await list_approvals(world.services, Principal(eva), PageRequest(), where)
        assert len(found.rows) == count
    other = f"/a/{personal_token(world.services.signing_key, approval, 'bob@example.org')}"
    done = await world.http.post(f"{other}/approve", json=shown(approval))
    assert done.json()["status"] == "APPROVED"


@pytest.mark.parametrize("end", ["approved", "rejected", "cancelled", "expired", "key"])
async def test_a_link_is_dead_when_it_is_over(world: World, end: str):
    """Each end is a page that says so, 410, and rows are shown no more. PL-1, PL-4."""
    approval, link = await asked(world)
    says = {
        "approved": "by bob@example.org",
        "rejected": "by bob@example.org",
        "cancelled": "because the execution has ended",
        "expired": "The time to decide is over",
        "key": "never valid here",
    }
    if end in ("approved", "rejected"):
        other = f"/a/{personal_token(world.services.signing_key, approval, 'bob@example.org')}"
        deed = "approve" if end == "approved" else "reject"
        body = shown(approval) if deed == "approve" else {}
        assert (await world.http.post(f"{other}/{deed}", json=body)).status_code == 200
    elif end == "cancelled":
        await world.post(f"/api/v1/executions/{approval.execution_id}/cancel", {})
    elif end == "expired":
        world.clock.advance(24 * HOUR)
    else:
        link = f"/a/{personal_token(b'the key before', approval, EVA)}"
    before = await stored(world)
    seen = await world.http.get(link, headers=HTML)
    assert seen.status_code == 410
    assert says[end] in seen.text
    assert "<td" not in seen.text
    assert 'value="approve"' not in seen.text
    rows = await world.http.get(f"{link}/rows")
    assert rows.status_code == 410 or rows.json()["groups"] == []
    late = await world.http.post(f"{link}/approve", json=shown(approval))
    assert late.status_code in (409, 410)
    posted = await world.http.post(link, data={"decision": "reject"}, headers=ours(world))
    assert posted.status_code in (409, 410)
    if end != "expired":
        assert await stored(world) == before


async def stored(world: World) -> list[Approval]:
    page = await list_approvals(world.services, OPERATOR, PageRequest())
    return list(page.rows)


async def test_guests_see_nothing_else(world: World):
    """No other approval, no execution, no list, no download, at no other door. PL-2."""
    approval, link = await asked(world)
    other, _ = await asked(world)
    token = link.removeprefix("/a/")
    for path in ("/inbox", f"/approvals/{approval.id}", f"/approvals/{other.id}"):
        for headers in (HTML, {**HTML, "Authorization": f"Bearer {token}"}):
            assert (await world.http.get(path, headers=headers)).status_code == 401
    run = approval.execution_id
    for path in (
        f"/api/v1/executions/{run}",
        f"/api/v1/approvals/{approval.id}",
        "/api/v1/approvals",
    ):
        for at in (path, f"{path}?token={token}"):
            headers = {"Authorization": f"Bearer {token}"}
            assert (await world.http.get(at, headers=headers)).status_code == 401
    assert (await world.http.get(f"/executions/{run}", headers=HTML)).status_code in (401, 404)
    for part in ("execution", "artifacts", "../inbox"):
        assert (await world.http.get(f"{link}/{part}", headers=HTML)).status_code in (404, 410)
    owner = Guest(world.ann.email, approval.id, world.ann.id)
    eva = Guest(EVA, approval.id)
    async with world.services.store.view() as view:
        for guest in (owner, eva):
            with pytest.raises(NotFound):
                await execution_for(view, guest, run)
    for guest, id in (
        (eva, other.id),
        (owner, approval.id),
        (evolve(eva, email="x@y.z"), approval.id),
    ):
        with pytest.raises(NotFound):
            await read_approval(world.services, guest, id)


async def test_what_bars_an_account_bars_its_links(world: World):
    """Self-approval with the email of who started it, and a blocked account. AP-18, AC-1."""
    approval, link = await asked(world, world.ann.email, allow_self_approval=False)
    refused = await world.http.post(f"{link}/approve", json=shown(approval))
    assert (refused.status_code, "another approver" in refused.text) == (403, True)
    await accounts.set_account(
        world.services, OPERATOR, world.ann.id, status=AccountStatus.DISABLED
    )
    assert (await world.http.get(link, headers=HTML)).status_code == 403
    assert (await world.http.post(f"{link}/reject", json={})).status_code == 403


async def test_a_member_of_a_group_decides_by_a_link(world: World):
    """Whoever the group stands for as the approval opens has a link. AP-49, PL-1."""
    await create_group(world.services, OPERATOR, "finance", [EVA])
    approval, link = await asked(world, approvers=("group:finance",))
    assert approval.approvers == (EVA,)
    page = await world.http.get(link, headers=HTML)
    assert f"you decide as {EVA}" in page.text
    form = {"decision": "approve", **shown(approval)}
    await world.http.post(link, data=form, headers=ours(world))
    assert (await approval_of(world, approval.id)).decided_by == EVA


async def test_without_named_approvers_the_email_is_that_of_an_account(world: World):
    """By the default rule: an owner's link works, and a share's as long as it grants EDIT. PL-2."""
    bob = await world.account("bob")
    _, id = await world.paused()
    approval = await approval_of(world, id)
    mine, his = (
        f"/a/{personal_token(world.services.signing_key, approval, email)}"
        for email in (world.ann.email, bob.email)
    )
    assert (await world.http.get(mine, headers=HTML)).status_code == 200
    assert (await world.http.get(his, headers=HTML)).status_code == 404
    await share_workflow(world.services, OPERATOR, approval.workflow_id, bob.id, Permission.EDIT)
    assert (await world.http.get(his, headers=HTML)).status_code == 200


async def test_a_step_may_want_its_approvers_signed_in(world: World):
    """`links: sign_in`: the link leads to the page for those signed in, and opens nothing. PL-5."""
    approval, link = await asked(world, links=Links.SIGN_IN)
    led = await world.http.get(link, headers=HTML)
    assert (led.status_code, led.headers["location"]) == (303, f"/approvals/{approval.id}")
    assert (await world.http.get(f"{link}/rows")).status_code == 403
    for deed in ("approve", "reject"):
        assert (await world.http.post(f"{link}/{deed}", json={})).status_code == 403
    with pytest.raises(SignInFirst):
        await read_approval(world.services, Guest(EVA, approval.id), approval.id)


async def test_a_hundred_bots_change_nothing(tmp_path: Path, world: World):
    """GET and HEAD of the link and of what belongs to it leave every byte as it was."""
    _, link = await asked(world)
    before = stored_bytes(tmp_path)
    for number in range(100):
        method = ("GET", "HEAD")[number % 2]
        path = f"{link}{('', '/rows', '/state')[number % 3]}"
        assert (await world.http.request(method, path, headers=SEEN)).status_code == 200
    assert stored_bytes(tmp_path) == before


def stored_bytes(folder: Path) -> list[str]:
    """Everything that the databases hold."""
    found = []
    for path in sorted(folder.rglob("*.db")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            found.append("\n".join(database.iterdump()))
    assert found
    return found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Cookie": "a=b"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 303),
        ({"Origin": "OURS"}, 303),
    ],
)
async def test_a_decision_by_link_comes_from_the_page(world: World, headers, status: int):
    """Another site's form and a browser that says nothing decide nothing. SE-3, SE-8."""
    approval, link = await asked(world)
    sent = {name: value.replace("OURS", world.url) for name, value in headers.items()}
    form = {"decision": "approve", **shown(approval)}
    done = await world.http.post(link, data=form, headers={**HTML, **sent})
    assert done.status_code == status
    is_open = (await approval_of(world, approval.id)).status is ApprovalStatus.PENDING
    assert is_open is (status == 403)


async def test_a_guest_opens_what_is_attached_and_nothing_else(world: World):
    """The page's link opens the file without an account; other files, and CSV after it, do not."""
    workflow = await world.workflow(
        code("fetch"), code("more"), review(attachments=("fetch",), approvers=(EVA,))
    )
    execution = await world.start(workflow)
    await world.run(
        StepEnd(files=(await left(world, "seen"),)), StepEnd(files=(await left(world, "other"),))
    )
    found = (await world.get(f"/api/v1/approvals/execution/{execution}")).json()
    approval = await approval_of(world, found["approvals"][0]["id"])
    link = f"/a/{personal_token(world.services.signing_key, approval, EVA)}"
    page = (await world.http.get(link, headers=HTML)).text
    (url,) = re.findall(r'<a href="([^"]*/download[^"]*)">(?:<bdi>)?seen.txt', page)
    assert (await world.http.get(unescape(url))).content == b"seen"
    assert "other.txt" not in page
    listed = (await world.get(f"/api/v1/executions/{execution}/artifacts")).json()["artifacts"]
    (other,) = [one for one in listed if one["name"] == "other.txt"]
    unsigned = f"/api/executions/{execution}/artifacts/{other['id']}/download"
    assert (await world.http.get(unsigned)).status_code == 401
    stolen = f"{unsigned}?{url.partition('?')[2]}"
    assert (await world.http.get(unescape(stolen))).status_code in (401, 403, 404)
    assert (await world.http.get(f"{link}/rows/0")).text.count("\n") == 3
    form = {"decision": "approve", **shown(approval)}
    await world.http.post(link, data=form, headers=ours(world))
    assert (await world.http.get(f"{link}/rows/0")).status_code == 404


async def left(world: World, name: str) -> LeftFile:
    """A file that a step left, which holds its own name."""
    id = world.services.ids.new("art", world.services.clock.now())
    kept = await world.services.files.store(f"e-{name}", id, BytesIO(name.encode()))
    return LeftFile(
        id, f"{name}.txt", kept.storage_key, kept.size, "text/plain", kept.sha256, False
    )
