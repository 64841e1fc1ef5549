"""Files, answers and changes on the approval page: in the browser, and without scripts."""

from typing import Any

from playwright.sync_api import Browser, Page, expect

from wfcore.model.approval import ApprovalStatus
from wfcore.model.review import Stage
from wfcore.model.workflow import Column, ColumnType, OnRevise

from .approval_case import Case, approve, bar, show
from .conftest import Site, arrived, enter

FIELDS = (
    Column("reason", "Why now?", required=True),
    Column("risk", "Risk", ColumnType.ENUM, options=("low", "high")),
    Column("limit", "Limit", ColumnType.NUMBER),
)


def reviewed(site: Site, **more: Any) -> Case:
    return Case(site, 3, fields=FIELDS, on_revise=OnRevise("collect", 2), **more)


def test_answers_are_asked_for_and_sent(site: Site, signed_in: Page, accessible: Any) -> None:
    """A required field is gone to first and says so; answers are in the sheet and on record."""
    case = reviewed(site)
    page = signed_in
    show(case, page)
    accessible(page)
    bar(page).get_by_role("button", name="Review and approve").click()
    why = page.get_by_label("Why now?")
    expect(why).to_be_focused()
    expect(why).to_have_accessible_description("is required")
    expect(page.locator(".answers small")).to_have_text(["is required"])
    accessible(page)
    why.press("x")
    expect(page.locator(".answers small")).to_have_count(0)
    page.get_by_label("Why now?").fill("end of quarter")
    page.get_by_label("Risk").select_option("low")
    page.get_by_label("Limit").fill("12.5")
    bar(page).get_by_role("button", name="Review and approve").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Why now?: end of quarter")
    dialog.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved")
    assert case.now().answers == {"reason": "end of quarter", "risk": "low", "limit": 12.5}


def test_changes_are_asked_for_with_a_comment(site: Site, signed_in: Page) -> None:
    """The sheet wants words; then the execution goes back, and the page says so."""
    case = reviewed(site)
    page = signed_in
    show(case, page)
    bar(page).get_by_role("button", name="Ask for changes").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Ask for changes").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("What is to be changed?").fill("shorter")
    dialog.get_by_role("button", name="Ask for changes").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Changes asked for")
    assert (case.now().status, case.now().comment) == (ApprovalStatus.REVISED, "shorter")


def test_all_of_it_works_without_scripts(site: Site, browser: Browser) -> None:
    """On a phone, by the form alone: a wrong answer is told and kept; then it is sent."""
    case = reviewed(site)
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()
    enter(site, page)
    page.goto(case.url)
    page.get_by_label("Why now?").fill("now")
    page.get_by_label("Limit").fill("much")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_contain_text("Limit: must be a number")
    expect(page.get_by_label("Why now?")).to_have_value("now")
    page.get_by_label("Limit").fill("7")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved")
    assert page.locator("html").bounding_box()["width"] <= 390
    context.close()
    assert case.now().answers == {"reason": "now", "limit": 7}


def test_somebody_else_decides_in_my_place(site: Site, signed_in: Page, accessible: Any) -> None:
    """The page confirms it, with what keeps them from learning of it, or refuses it. AP-36."""
    case = Case(site, 2, approvers=("ann@example.org",), delegable=True)
    page = signed_in
    page.goto(case.url)
    page.get_by_text("Let somebody else decide on your behalf").click()
    accessible(page)
    page.get_by_label("E-mail or account id").fill("ann@example.org")
    page.get_by_role("button", name="Let them decide").click()
    expect(page.get_by_role("alert")).to_contain_text("somebody else")
    page.get_by_text("Let somebody else decide on your behalf").click()
    page.get_by_label("E-mail or account id").fill("carol@example.org")
    page.get_by_role("button", name="Let them decide").click()
    told = page.locator("main > [role=status].notice:not(#banner)")
    expect(told).to_contain_text("carol@example.org may decide on your behalf now. Nobody has")
    page.get_by_text("Let somebody else decide on your behalf").click()
    page.get_by_label("E-mail or account id").fill("bob@example.org")
    page.get_by_role("button", name="Let them decide").click()
    expect(told).to_contain_text("bob@example.org may decide on your behalf now. No mail goes out")
    expect(
        page.get_by_text("ann@example.org lets bob@example.org decide; this ends in")
    ).to_be_visible()
    case.decide(case.bob)
    assert case.now().status is ApprovalStatus.APPROVED
    page.reload()
    expect(page.locator(".outcome")).to_be_visible()
    expect(told).to_have_count(0)


def test_it_says_whose_turn_it_is(site: Site, signed_in: Page) -> None:
    """Who may decide now; whose stage is over has agreed, and is no stranger. AP-33."""
    first, then = (Stage((f"{name}@example.org",)) for name in ("ann", "bob"))
    case = Case(site, 2, stages=(first, then))
    show(case, signed_in)
    expect(signed_in.get_by_text("May decide: ann@example.org")).to_be_visible()
    approve(signed_in)
    expect(signed_in.get_by_text("You have agreed; others must agree, too.")).to_be_visible()
    expect(signed_in.get_by_text("May decide: bob@example.org")).to_be_visible()
    signed_in.goto(Case(site, 2).url)
    expect(signed_in.get_by_text("May decide: its owners, and whoever may edit")).to_be_visible()


def test_a_rule_is_called_one(site: Site, signed_in: Page) -> None:
    """Where names of people stand, so that nobody looks for them. AP-35."""
    case = Case(site, 2, auto_approve="{{ steps.collect.output.rows }}", required_approvals=2)
    signed_in.goto(case.url)
    expect(signed_in.get_by_text("1 of 2 have agreed: a rule")).to_be_visible()
    expect(signed_in.get_by_text("a rule: approved")).to_be_visible()


def test_every_button_fits_a_phone(site: Site, browser: Browser) -> None:
    """All three, in the longer words of German."""
    case = reviewed(site)
    phone = {"width": 390, "height": 844}
    context = browser.new_context(viewport=phone, has_touch=True, is_mobile=True, locale="de")
    page = context.new_page()
    page.goto(site.link())
    page.get_by_role("button", name="Weiter als").click()
    arrived(page)
    show(case, page)
    bar(page).get_by_role("button", name="Andere Entscheidungen").tap()
    for name in ("Ablehnen…", "Änderungen verlangen…", "3 prüfen und freigeben"):
        expect(bar(page).get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    context.close()


def test_yes_and_no_are_words(site: Site, browser: Browser) -> None:
    """In cells and in the choices of a field, in the reader's language; without scripts, too."""
    case = Case(site, 1, fields=(Column("sure", "Sure?", ColumnType.BOOLEAN),))
    context = browser.new_context(java_script_enabled=False, locale="de")
    page = context.new_page()
    page.goto(site.link())
    page.get_by_role("button", name="Weiter als").click()
    page.goto(case.url)
    expect(page.get_by_role("cell", name="nein", exact=True)).to_be_visible()
    expect(page.get_by_label("Sure?").locator("option")).to_have_text(["", "ja", "nein"])
    page.get_by_label("Sure?").select_option("true")
    page.get_by_role("button", name="Freigeben").click()
    expect(page.get_by_role("definition")).to_have_text("ja")
    context.close()
    assert case.now().answers == {"sure": True}
