"""
The promises of a store about pages: by number and by cursor, while rows are added and deleted.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from attrs import evolve

from wfcore.model.access import Permission
from wfcore.model.approval import Approval, ApprovalStatus, Assent
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.page import Page, PageCursor, PageRequest
from wfcore.model.review import Stage
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.ports.store import Store
from wfcore.testing import builders as make
from wfcore.testing.contracts import samples
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.contracts.lists import ALL, at, ids

List = Callable[[Any, PageRequest], Awaitable[Page[Any]]]
LISTS: dict[str, List] = {
    "executions": lambda view, page: view.executions.list(ExecutionFilter(), page),
    "executions, oldest first": lambda view, page: view.executions.list(
        ExecutionFilter(oldest_first=True), page
    ),
    "of an owner": lambda view, page: view.executions.list(ExecutionFilter("acc_1"), page),
    "of a workflow": lambda view, page: view.executions.list(
        ExecutionFilter(workflow_id="wf_1"), page
    ),
    "approvals": lambda view, page: view.approvals.list(ApprovalFilter(), page),
    "approvals, oldest first": lambda view, page: view.approvals.list(
        ApprovalFilter(oldest_first=True), page
    ),
    "of an approver": lambda view, page: view.approvals.list(
        ApprovalFilter("acc_1", "acc_1@example.org"), page
    ),
    "workflows": lambda view, page: view.workflows.list(page),
    "workflows of somebody": lambda view, page: view.workflows.visible_to("acc_1", page),
    "webhooks": lambda view, page: view.webhooks.of_owner(None, page),
    "webhooks of somebody": lambda view, page: view.webhooks.of_owner("acc_1", page),
    "triggers": lambda view, page: view.triggers.list(page),
    "notices": lambda view, page: view.notices.list((), page),
    "accounts": lambda view, page: view.accounts.list(page),
}
"""Every list that is shown by pages."""


def records(*numbers: int) -> list[Any]:
    """One record of each list for every number. Even numbers share a millisecond."""
    return [
        record
        for n in numbers
        for when in [at(n if n % 2 else 4)]
        for record in (
            make.execution(f"exec_{n}", accepted_at=when),
            make.approval(f"apr_{n}", created_at=when),
            make.workflow(f"wf_{n}", name=f"name {n // 3}", owner_id=f"acc_{n}"),
            make.share(f"wf_{n}", "acc_1", permission=Permission.VIEW),
            make.webhook(f"wh_{n}", created_at=when),
            make.trigger(f"trg_{n}", created_at=when),
            make.notice(f"ntc_{n}", created_at=when),
            make.account(f"acc_{n}", email=f"{n}@example.org", created_at=when),
        )
    ]


class PageContract:
    """The promises about pages. See `keeping.Handles` for the fixtures."""

    async def test_what_waits_leaves_out_who_is_idle(self, store: Store) -> None:
        """
        `waiting` shows an approval only to people of the current stage, however the stage names
        them.
        """
        first, second = Stage(("ACC_1", "two@example.org")), Stage(("acc_3",))
        given = (Assent("acc_1@example.org", "acc_1", at(1)),)
        open = make.approval(
            "apr_1", approvers=("ACC_1", "two@example.org"), stages=(first, second)
        )
        asked = evolve(open, id="apr_2", approvers=(*open.approvers, "acc_3"), assents=given)
        await keep(store, open, asked)
        found = {}
        for id, email in (("acc_1", "one"), ("acc_2", "Two"), ("acc_3", "three")):
            mine = ApprovalFilter(id, f"{email}@example.org", waiting=True)
            async with store.view() as view:
                found[id] = ids((await view.approvals.list(mine, ALL)).rows)
        assert found == {"acc_1": ["apr_1"], "acc_2": ["apr_1"], "acc_3": ["apr_2"]}

    async def test_executions_are_counted_by_status(self, store: Store) -> None:
        """
        Executions that fit the filter are counted for each status, up to a limit, whatever statuses
        the filter names.
        """
        failed, done = ExecutionStatus.FAILED, ExecutionStatus.COMPLETED
        await keep(
            store,
            *(make.execution(f"f{n}", status=failed, due_at=None) for n in range(3)),
            make.execution("d1", status=done, due_at=None),
            make.execution("d2", status=done, due_at=None, owner_id="acc_2"),
        )
        async with store.view() as view:
            all = await view.executions.by_status(ExecutionFilter(statuses=(failed,)), 9)
            mine = await view.executions.by_status(ExecutionFilter(owner_id="acc_1"), 2)
            api = ExecutionFilter("acc_1", sources=(TriggerSource.OPEN_API,))
            called = await view.executions.by_status(api, 9)
        none = dict.fromkeys(ExecutionStatus, 0)
        assert dict(all) == {**none, failed: 3, done: 2}
        assert dict(mine) == {**none, failed: 2, done: 1}
        assert dict(called) == {**none, failed: 3, done: 1}

    async def test_pages_cut_the_list_and_know_the_total(self, store: Store) -> None:
        """Pages follow each other without gap or overlap, and each has the exact total."""
        runs = [make.execution(f"exec_{n}", accepted_at=at(n)) for n in range(7)]
        await keep(store, *runs)
        async with store.view() as view:
            pages = [
                await view.executions.list(ExecutionFilter(), PageRequest(number, 3))
                for number in (1, 2, 3, 4)
            ]
        assert [ids(page) for page in pages] == [
            ["exec_6", "exec_5", "exec_4"],
            ["exec_3", "exec_2", "exec_1"],
            ["exec_0"],
            [],
        ]
        assert [(page.total, page.page, page.size) for page in pages] == [
            (7, number, 3) for number in (1, 2, 3, 4)
        ]

    async def test_equal_times_are_ordered_by_id(self, store: Store) -> None:
        """Records of the same millisecond are ordered by id, highest first."""
        await keep(store, *(make.execution(f"exec_{n}") for n in (2, 1, 3)))
        async with store.view() as view:
            found = await view.executions.list(ExecutionFilter(), ALL)
        assert ids(found) == ["exec_3", "exec_2", "exec_1"]

    @pytest.mark.parametrize("given_name", LISTS)
    async def test_a_list_is_read_on_behind_a_row(self, store: Store, given_name: str) -> None:
        """Following `next` returns each row once, in order, and without a total."""
        await keep(store, *records(*range(7)))
        page: PageRequest | None = PageRequest(size=2)
        seen: list[str] = []
        totals = []
        async with store.view() as view:
            whole = await LISTS[given_name](view, ALL)
            while page is not None:
                found = await LISTS[given_name](view, page)
                assert len(found.rows) == 2 or found.next is None
                seen += ids(found)
                totals.append(found.total)
                assert len(totals) <= len(whole.rows), "it goes on for ever"
                page = found.rest
        assert (seen, len(seen), whole.next) == (ids(whole), 7, None)
        assert totals == [7, None, None, None]

    @pytest.mark.parametrize("given_name", LISTS)
    async def test_what_is_added_and_goes_moves_no_cursor(
        self, store: Store, given_name: str
    ) -> None:
        """A row added or deleted between two pages neither repeats nor hides another row."""
        await keep(store, *records(2, 3, 4, 5, 6))
        async with store.view() as view:
            whole = ids(await LISTS[given_name](view, ALL))
            first = await LISTS[given_name](view, PageRequest(size=2))
        assert first.rest is not None
        await keep(store, *records(0, 1, 7, 8))
        async with store.view() as view:
            behind = await LISTS[given_name](view, PageRequest(size=100, after=first.next))
        assert [id for id in ids(behind) if id in whole] == whole[2:]
        assert set(ids(behind)).isdisjoint(whole[:2])

    async def test_a_cursor_needs_no_row_of_its_own(self, store: Store) -> None:
        """A cursor to a deleted or unknown row continues with the rows that would follow it."""
        await keep(store, *(make.execution(f"exec_{n}", accepted_at=at(n)) for n in range(4)))
        async with store.unit() as unit:
            unit.purge("exec_2")
            await unit.commit()
        async with store.view() as view:
            for cursor, behind in (
                (PageCursor(at(2), "exec_2"), ["exec_1", "exec_0"]),
                (PageCursor(at(1), "exec_10"), ["exec_1", "exec_0"]),
                (PageCursor(0, ""), []),
            ):
                page = PageRequest(size=9, after=cursor)
                assert ids(await view.executions.list(ExecutionFilter(), page)) == behind

    async def test_lists_of_approvals_are_of_heads(self, store: Store) -> None:
        """
        Listed approvals lack rows, history and other long values. `get` and the approvals of one
        execution have them. AP-13.
        """
        asked = evolve(
            samples.APPROVAL,
            status=ApprovalStatus.PENDING,
            expires_at=at(9),
            reminders=(at(1),),
            reminded=0,
        )
        await keep(store, asked)
        stored = evolve(asked, version=1)
        async with store.view() as view:
            listed = (await view.approvals.list(ApprovalFilter(), ALL)).rows
            for found in (
                listed,
                await view.approvals.due(at(9), 9),
                await view.approvals.reminders_due(at(9), 9),
            ):
                assert list(found) == [stored.head]
            assert [group.count for group in listed[0].groups] == [2, 0]
            assert await view.approvals.of_execution(asked.execution_id) == [stored]
            assert await view.get(Approval, asked.id) == stored
            assert await view.some(Approval, [asked.id]) == [stored]
        with pytest.raises(KeyError, match="ApprovalHead"):
            await keep(store, stored.head)
        async with store.view() as view:
            assert await view.get(Approval, asked.id) == stored
