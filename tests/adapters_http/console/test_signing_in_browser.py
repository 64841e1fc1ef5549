"""Signed releases by several people in Chromium: answers, quorum, stages, delegation, changes."""

from collections.abc import Callable, Iterator

import pytest
from attrs import evolve
from playwright.sync_api import Browser, Page, expect

from wfcore.model.approval import ApprovalStatus
from wfcore.model.review import Stage
from wfcore.model.workflow import Assurance, Column, OnRevise
from wfcore.ports.runtime import StepEnd
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.receipt import receipt_fault

from .approval_case import Case, approve, bar, both, find_or_make, rows, show
from .conftest import Site, enter, watched
from .test_passkeys_in_browser import VERIFIES, register, site
from .test_personal_links import left

__all__ = ["site"]
Join = Callable[[str], Page]
FIELDS = (Column("reason", "Why now?", required=True),)


@pytest.fixture
def join(browser: Browser, site: Site) -> Iterator[Join]:
    """A browser of somebody who has registered a passkey."""
    made = []

    def joined(name: str) -> Page:
        context = watched(browser.new_context(viewport={"width": 1280, "height": 900}), site)
        made.append(context)
        page: Page = context.new_page()
        page.bring_to_front()
        enter(site, page, site.do(find_or_make(site, name)).id)
        register(site, page, f"{name}'s key")
        return page

    yield joined
    for context in made:
        context.close()
        assert context.complaints == []


def sign(case: Case, page: Page) -> None:
    """Approve in this browser, whose window has to be in front: no other signs."""
    page.bring_to_front()
    show(case, page)
    approve(page)


def case_of(site: Site, **step: object) -> Case:
    return Case(site, 3, assurance=Assurance.PASSKEY, **step)


def signers(case: Case) -> list[str]:
    """The people whose receipts the approval has; each fits by itself."""
    receipts = [one.receipt for one in case.now().assents]
    assert all(one is not None and receipt_fault(one, VERIFIES) is None for one in receipts)
    names = {one.account: one.by for one in case.now().assents}
    return [names[str(one.statement["accountId"])] for one in receipts if one is not None]


def test_two_people_sign_rows_and_answers(site: Site, join: Join) -> None:
    """Each by a key of their own; both statements have the answers. SR-1, SR-2, AP-15."""
    ann, bob = join("ann"), join("bob")
    case = case_of(site, fields=FIELDS, **both(required_approvals=2))
    ann.bring_to_front()
    show(case, ann)
    ann.get_by_label("Why now?").fill("end of quarter")
    approve(ann)
    expect(ann.locator(".after")).to_contain_text("You have agreed: 1 of 2")
    assert case.now().status is ApprovalStatus.PENDING
    bob.bring_to_front()
    show(case, bob)
    expect(bob.get_by_label("Why now?")).to_have_value("end of quarter")
    approve(bob)
    expect(bob.get_by_role("heading", level=2).first).to_contain_text("Approved")
    assert signers(case) == ["ann@example.org", "bob@example.org"]
    answers = [one.receipt and one.receipt.statement["answers"] for one in case.now().assents]
    assert answers == [{"reason": "end of quarter"}] * 2


def test_each_stage_is_signed_in_its_turn(site: Site, join: Join) -> None:
    """The second is asked after the first has signed, and signs the same rows. SR-2, AP-33."""
    ann, bob = join("ann"), join("bob")
    stages = tuple(Stage((f"{name}@example.org",)) for name in ("ann", "bob"))
    case = case_of(site, stages=stages)
    bob.goto(case.url)
    expect(bob.get_by_role("button", name="Review and sign")).to_have_count(0)
    sign(case, ann)
    expect(ann.locator(".after")).to_be_visible()
    sign(case, bob)
    expect(bob.get_by_role("heading", level=2).first).to_contain_text("Approved")
    assert signers(case) == ["ann@example.org", "bob@example.org"]


def test_a_delegate_signs_with_a_key_of_their_own(site: Site, join: Join) -> None:
    """Ann hands on; the receipt names Bob, who held the passkey. SR-2, AP-36."""
    ann, bob = join("ann"), join("bob")
    case = case_of(site, approvers=("ann@example.org",), delegable=True)
    ann.goto(case.url)
    ann.get_by_text("Let somebody else decide on your behalf").click()
    ann.get_by_label("E-mail or account id").fill("bob@example.org")
    ann.get_by_role("button", name="Let them decide").click()
    expect(ann.get_by_text("ann@example.org lets bob@example.org decide")).to_be_visible()
    sign(case, bob)
    expect(bob.get_by_role("heading", level=2).first).to_contain_text("Approved")
    assert signers(case) == ["bob@example.org"]


def test_after_changes_the_new_rows_are_signed(site: Site, join: Join) -> None:
    """Asking for changes needs no passkey; the next round's receipt is of its rows. SR-1."""
    ann = join("ann")
    case = case_of(site, on_revise=OnRevise("collect", 2))
    show(case, ann)
    bar(ann).get_by_role("button", name="Ask for changes").click()
    dialog = ann.get_by_role("dialog")
    dialog.get_by_label("What is to be changed?").fill("shorter")
    dialog.get_by_role("button", name="Ask for changes").click()
    expect(ann.get_by_role("heading", level=2).first).to_contain_text("Changes asked for")
    site.do(site.world.run(StepEnd({"rows": rows(2)})))
    listed = site.do(site.world.get(f"/api/v1/approvals/execution/{case.execution_id}")).json()
    (case.id,) = [one["id"] for one in listed["approvals"] if one["status"] == "PENDING"]
    case.url = f"{site.url}/approvals/{case.id}"
    sign(case, ann)
    expect(ann.get_by_role("heading", level=2).first).to_contain_text("Approved")
    assert signers(case) == ["ann@example.org"]
    assert len(case.now().groups[0].items) == 2


def test_what_is_attached_is_signed_with_the_rows(site: Site, join: Join) -> None:
    """The file that the page shows is signed, too: another file does not fit. SR-1, AP-29."""
    ann = join("ann")
    file = site.do(left(site.world, "invoice"))
    case = Case(site, 2, files=(file,), attachments=("collect",), assurance=Assurance.PASSKEY)
    show(case, ann)
    expect(ann.get_by_role("link", name="invoice.txt")).to_be_visible()
    sign(case, ann)
    expect(ann.get_by_role("heading", level=2).first).to_contain_text("Approved")
    assert signers(case) == ["ann@example.org"]
    after = case.now()
    signed = after.assents[-1].receipt
    other = tuple(evolve(one, sha256="0" * 64) for one in after.attachments)
    assert signed is not None
    assert signed.statement["itemsHash"] == items_hash(after)
    assert signed.statement["itemsHash"] != items_hash(evolve(after, attachments=other))
