"""Several approvals decided at once, in the browser: what came between is told for each. AP-39."""

from collections.abc import Sequence

from playwright.sync_api import Browser, Page, expect

from wfcore.model.access import OPERATOR, Principal
from wfcore.model.approval import ApprovalStatus, DecisionSource
from wfcore.rules.approval.machine import Approve
from wfcore.rules.limits import MAX_DECISIONS
from wfcore.usecases.approvals.approvals import read_approval
from wfcore.usecases.approvals.deciding import Decide, decide_approval

from .approval_case import find_or_make
from .conftest import Site, enter


def fill(site: Site, count: int) -> Sequence[str]:
    """So many that wait for Ann or Bob."""
    return site.do(site.world.waiting(count, approvers=("ann@example.org", "bob@example.org")))


def decide(site: Site, id: str, edited: object = None) -> None:
    """Bob decides, in another window."""
    bob = Principal(site.do(find_or_make(site, "bob")))
    asked = Decide(id, Approve(edited), DecisionSource.API)  # type: ignore[arg-type]
    site.do(decide_approval(site.world.services, bob, asked))


def status(site: Site, id: str) -> ApprovalStatus:
    return site.do(read_approval(site.world.services, OPERATOR, id)).status


def test_fifty_of_which_two_changed_meanwhile(site: Site, signed_in: Page, accessible):
    """50 selected; one decided and one changed before the click: 48 decided, 2 named. AP-39."""
    ids = list(fill(site, MAX_DECISIONS - 1))
    two = {"approvers": ("ann@example.org", "bob@example.org"), "required_approvals": 2}
    (changed,) = site.do(site.world.waiting(1, **two))
    page = signed_in
    page.goto(f"{site.url}/inbox")
    for box in page.locator("main li input[type=checkbox]").all():
        box.check()
    expect(page.locator("#count")).to_have_text("50 selected")
    page.get_by_role("button", name="Approve as proposed").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Approve 50 as they stand?")
    expect(page.locator("main li").first).to_contain_text("Refunds: 2 rows")
    expect(page.locator("main li").first).to_contain_text("Amount 30")
    decide(site, ids[3])
    decide(site, changed, {"refunds": [{"id": 1, "amount": 11}]})
    page.get_by_label("Comment").fill("as every month")
    page.get_by_role("button", name="Approve 50").click()
    expect(page.get_by_role("status")).to_have_text("48 decisions count. 2 were left as they are.")
    refused = page.locator("main li", has_text="✕")
    expect(refused).to_have_count(2)
    for reason in ("bob@example.org was faster", "rows have changed since you saw them"):
        expect(refused.filter(has_text=reason)).to_have_count(1)
    rest = [id for id in ids if id != ids[3]]
    assert {status(site, id) for id in rest} == {ApprovalStatus.APPROVED}
    assert status(site, changed) is ApprovalStatus.PENDING
    decided = site.do(read_approval(site.world.services, OPERATOR, rest[0]))
    assert (decided.comment, decided.decision_source) == ("as every month", DecisionSource.CONSOLE)
    page.get_by_role("link", name="Look at what changed").click()
    expect(page.get_by_text("Its rows were changed by bob@example.org.")).to_be_visible()
    expect(page.locator("main s")).to_have_text("30")


def test_keys_reach_the_preview(site: Site, signed_in: Page, accessible):
    """`j x j x a` selects two and shows what approving them means; axe finds nothing. B3."""
    fill(site, 3)
    page = signed_in
    page.goto(f"{site.url}/inbox")
    accessible(page)
    page.keyboard.type("jxjxa")
    expect(page.get_by_role("heading", level=1)).to_have_text("Approve 2 as they stand?")
    accessible(page)
    page.get_by_role("button", name="Approve 2").click()
    expect(page.get_by_role("status")).to_have_text("2 decisions count.")
    accessible(page)


def test_nothing_is_done_with_nothing(site: Site, signed_in: Page):
    """The buttons for several wait until something is selected, in both lists."""
    fill(site, 1)
    page = signed_in
    for path in ("/inbox", "/executions"):
        page.goto(site.url + path)
        buttons = page.locator(".chosen button")
        expect(buttons).to_have_count(2)
        for button in buttons.all():
            expect(button).to_be_disabled()
        page.locator("#chosen input[name=id]").first.check()
        for button in buttons.all():
            expect(button).to_be_enabled()
        page.locator("#chosen input[name=id]").first.uncheck()
        expect(buttons.first).to_be_disabled()


def test_without_scripts_several_are_rejected(browser: Browser, site: Site):
    """The boxes, the preview and the verdicts are forms and pages. B5."""
    ids = fill(site, 2)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(site, page)
    page.goto(f"{site.url}/inbox")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Reject…").click()
    page.get_by_label("Comment").fill("no")
    page.get_by_role("button", name="Reject 2").click()
    expect(page.get_by_role("status")).to_have_text("2 decisions count.")
    assert {status(site, id) for id in ids} == {ApprovalStatus.REJECTED}
    context.close()


def test_a_new_approval_is_told_and_not_inserted(site: Site, signed_in: Page):
    """`1 new, show` by itself, with the counts; nothing moves under the reader."""
    (first,) = fill(site, 1)
    page = signed_in
    page.goto(f"{site.url}/inbox")
    expect(page.locator("main li")).to_have_count(1)
    fill(site, 1)
    expect(page.get_by_role("link", name="1 new, show")).to_be_visible()
    expect(page.locator(".places .count")).to_have_text("2")
    expect(page.locator("main li")).to_have_count(1)
    expect(page.locator("main li")).to_have_id(first)
    page.get_by_role("link", name="1 new, show").click()
    expect(page.locator("main li")).to_have_count(2)
