"""An approval with rows of every type, and what a reviewer does with it in a browser."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from playwright.sync_api import Page, expect

from tests.adapters_http.console.conftest import Site
from tests.support.http_world import code
from wfcore.model.access import OPERATOR, Account, Principal
from wfcore.model.approval import Approval, DecisionSource, HistoryEntry
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec
from wfcore.ports.runtime import LeftFile, StepEnd
from wfcore.rules.approval.machine import Approve
from wfcore.usecases.approvals.approvals import read_approval
from wfcore.usecases.approvals.deciding import Decide, decide_approval

COLUMNS = (
    Column("id", "Payout", editable=False),
    Column("payee", "Payee", editable=False),
    Column("due", "Due", ColumnType.DATE, required=True),
    Column("method", "Method", ColumnType.ENUM, options=("SEPA", "CARD", "SWIFT")),
    Column("amount", "Amount", ColumnType.NUMBER, required=True),
    Column("hold", "Hold", ColumnType.BOOLEAN),
    Column("note", "Note"),
    Column("extra", "Extra", ColumnType.JSON),
)
NAMES = ("Niklaus Wirth", "Grace Hopper", "Ada Byron", "Katherine Johnson")


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"P-{1000 + n}",
            "payee": NAMES[n % 4],
            "due": f"2026-12-{n % 28 + 1:02}",
            "method": ("SEPA", "CARD", "SWIFT")[n % 3],
            "amount": (n * 7919 % 450_000) / 100 + 1,
            "hold": False,
            "note": None,
            "extra": None,
            "account": f"DE{n:020}",
        }
        for n in range(count)
    ]


class Case:
    """
    One approval of Ann's, and Bob, who may decide it, too; without rows if *count* is 0. *files*:
    those of the step before it.
    """

    def __init__(
        self,
        site: Site,
        count: int = 200,
        group: Mapping[str, Any] = MappingProxyType({}),
        files: tuple[LeftFile, ...] = (),
        **step: Any,
    ) -> None:
        self.site = site
        proposed = "{{ steps.collect.output.rows }}"
        spec = GroupSpec("payouts", "Payouts", proposed, COLUMNS, row_key="id", **group)
        message = f"{count} payouts wait for release. Check amounts of flagged rows."
        asked = ApprovalStep("review", message, groups=(spec,) if count else (), **step)
        self.bob: Account = site.do(find_or_make(site, "bob"))
        workflow = site.do(site.world.workflow(code("collect"), asked, name="Payout run"))
        self.execution_id = site.do(site.world.start(workflow))
        site.do(site.world.run(StepEnd({"rows": rows(count)}, files=files)))
        answer = site.do(site.world.get(f"/api/v1/approvals/execution/{self.execution_id}"))
        self.id = answer.json()["approvals"][0]["id"]
        self.url = f"{site.url}/approvals/{self.id}"

    def now(self) -> Approval:
        return self.site.do(read_approval(self.site.world.services, OPERATOR, self.id))

    def decisions(self) -> list[HistoryEntry]:
        """What people decided, without the entry about the question itself."""
        return [one for one in self.now().history if one.by is not None]

    def decide(self, who: Account, edited: Any = None) -> None:
        asked = Decide(self.id, Approve(edited), DecisionSource.API)
        self.site.do(decide_approval(self.site.world.services, Principal(who), asked))


def ask(site: Site, group: GroupSpec, **step: Any) -> str:
    """The page of an approval of these rows, for Ann."""
    asked = ApprovalStep("review", "Look at these", groups=(group,), **step)
    execution = site.do(site.world.start(site.do(site.world.workflow(asked))))
    site.do(site.world.run())
    listed = site.do(site.world.get(f"/api/v1/approvals/execution/{execution}")).json()
    return f"{site.url}/approvals/{listed['approvals'][0]['id']}"


async def find_or_make(site: Site, name: str) -> Account:
    async with site.world.services.store.view() as view:
        found = await view.accounts.by_email(f"{name}@example.org")
    return found or await site.world.account(name)


def both(**more: Any) -> dict[str, Any]:
    return {"approvers": ("ann@example.org", "bob@example.org"), **more}


def show(case: Case, page: Page) -> None:
    page.goto(case.url)
    expect(bar(page)).to_be_visible()


def cell(page: Page, row: str, column: str) -> Any:
    """The field of a cell, by its name."""
    return page.get_by_label(f"{column}, {row}")


def pick(page: Page, row: str) -> Any:
    return page.locator("td.pick input").and_(page.get_by_label(row))


def bar(page: Page) -> Any:
    return page.locator(".bar:not(#as-shown)")


def approve(page: Page, comment: str = "") -> None:
    bar(page).get_by_role("button", name=re.compile("Review and (approve|sign)")).click()
    if comment:
        page.get_by_role("dialog").get_by_label("Comment").fill(comment)
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()


def kept(page: Page) -> Any:
    """The drafts of this browser."""
    text = "Object.entries(localStorage).filter(([key]) => key.startsWith('wfcore:draft'))"
    return page.evaluate(text)
