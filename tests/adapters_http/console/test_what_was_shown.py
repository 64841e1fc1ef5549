"""What a page or a link says of a decision: what was shown, what came before. AP-44."""

from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from tests.support.http_world import World, a_world
from wfcore.model.access import OPERATOR
from wfcore.model.approval import ApprovalStatus
from wfcore.model.workflow import Column
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.auth.signed_links import personal_token
from wfcore.usecases.approvals.approvals import read_approval

BOB = "bob@example.org"
TWO = {"approvers": ("ann@example.org", BOB), "required_approvals": 2}


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


async def doors(world: World, id: str) -> dict[str, dict[str, str]]:
    """Ann's page and Bob's personal link, each with the headers of its reader."""
    approval = await read_approval(world.services, OPERATOR, id)
    link = f"/a/{personal_token(world.services.signing_key, approval, BOB)}"
    html = {"Accept": "text/html", "Origin": world.url}
    return {f"/approvals/{id}": {**html, **await world.sign_in()}, link: html}


@pytest.mark.parametrize("decision", ["approve", "reject", "revise"])
async def test_a_form_says_which_rows_were_shown(world: World, decision: str):
    """Without the hash a form is refused in words at page and link; typed text stays. AP-44."""
    _, id = await world.paused(**TWO, fields=(Column("why", "Why now?"),))
    for path, headers in (await doors(world, id)).items():
        form = {"decision": decision, "comment": "typed <b>", "answers.why": "quarter"}
        for hash in ({}, {"expectedItemsHash": ""}):
            answer = await world.http.post(path, data={**form, **hash}, headers=headers)
            assert answer.status_code == 409
            assert "does not say which rows you saw. Nothing was decided" in answer.text
            assert "typed &lt;b&gt;" in answer.text
            assert 'value="quarter"' in answer.text
        refused = await world.http.post(f"{path}/approve", json={}, headers=headers)
        assert refused.status_code == 400
        assert refused.json()["error"].startswith("expectedItemsHash: is required")
    approval = await read_approval(world.services, OPERATOR, id)
    assert (approval.status, approval.assents) == (ApprovalStatus.PENDING, ())


async def test_who_was_there_before_is_said(world: World):
    """A yes that counts already, and a decision of somebody, are told apart, by name. AP-16."""
    _, id = await world.paused(**TWO)
    (mine, ann), (theirs, bob) = (await doors(world, id)).items()
    seen = items_hash(await read_approval(world.services, OPERATOR, id))
    form = {"decision": "approve", "expectedItemsHash": seen}
    assert (await world.http.post(mine, data=form, headers=ann)).status_code == 303
    again = await world.http.post(mine, data=form, headers=ann)
    assert "You have agreed already; others must agree, too." in again.text
    several = {"decision": "approve", f"seen.{id}": seen}
    many = await world.http.post("/inbox/decide", data=several, headers=ann)
    assert "You have agreed already; others must agree, too." in many.text
    assert (await world.http.post(theirs, data=form, headers=bob)).status_code == 303
    late = await world.http.post(mine, data=form, headers=ann)
    assert f"{BOB} was faster." in late.text
    many = await world.http.post("/inbox/decide", data=several, headers=ann)
    assert f"Nothing was decided: {BOB} was faster." in " ".join(many.text.split())


async def test_the_last_yes_by_link_is_thanked(world: World):
    """Who decided by a link reads what was released; another link only that it is closed. PL-4."""
    _, id = await world.paused(approvers=(BOB, "eva@example.org"))
    approval = await read_approval(world.services, OPERATOR, id)
    bob, eva = (
        f"/a/{personal_token(world.services.signing_key, approval, one)}"
        for one in approval.approvers
    )
    form = {"decision": "approve", "expectedItemsHash": items_hash(approval)}
    html = {"Accept": "text/html", "Origin": world.url}
    assert (await world.http.post(bob, data=form, headers=html)).status_code == 303
    said = " ".join((await world.http.get(bob, headers=html)).text.split())
    assert "Thank you: your decision is on record. This link has done its work." in said
    assert "Released: <bdi>Refunds</bdi>, 2 rows." in said
    other = (await world.http.get(eva, headers=html)).text
    assert "This personal link is no longer valid: the approval is closed." in other
    assert "Released:" not in other
    assert "<td" not in said + other


async def test_a_click_cannot_answer(world: World):
    """Where an answer is required the page leads to the approval and has no button. AP-30."""
    _, id = await world.paused(fields=(Column("why", "Why now?", required=True),))
    path = f"/api/webhook-trigger/approval/{id}"
    key = {"api_key": world.key.text}
    page = await world.http.get(f"{path}/approve", params=key)
    assert "answer first: Why now?" in page.text
    assert f'href="{world.url}/approvals/{id}"' in page.text
    assert "<button" not in page.text
    assert "<button" in (await world.http.get(f"{path}/reject", params=key)).text
