"""The promises of a store about lists: filters, order, visibility, exact totals, due records."""

import asyncio
from typing import Any

import pytest
from attrs import evolve

from wfcore.model.access import Account, ApiKey, Permission
from wfcore.model.approval import ApprovalStatus, Assent
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.page import Page, PageRequest
from wfcore.model.webhook import Webhook
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.ports.store import Store
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts import samples
from wfcore.testing.contracts.keeping import keep
from wfcore.time import HOUR, EpochMs, later

ALL = PageRequest(1, 100)


def ids(found: Any) -> list[str]:
    """The ids of a page's or a sequence's records."""
    return [record.id for record in (found.rows if isinstance(found, Page) else found)]


def at(offset: int) -> EpochMs:
    """An instant near `NOW`."""
    return EpochMs(NOW + offset)


FAILED = (ExecutionStatus.FAILED,)
OPEN = (ExecutionStatus.PENDING, ExecutionStatus.INTERRUPTED)


class ListContract:
    """The promises about lists. See `keeping.Handles` for the fixtures."""

    @pytest.mark.parametrize(
        ("given_where", "given_expected"),
        [
            (ExecutionFilter(), ["e5", "e4", "e3", "e2", "e1"]),
            (ExecutionFilter(owner_id="acc_1"), ["e4", "e2", "e1"]),
            (ExecutionFilter(workflow_id="wf_1"), ["e5", "e3", "e1"]),
            (ExecutionFilter(statuses=FAILED), ["e5", "e2"]),
            (ExecutionFilter(owner_id="acc_1", workflow_id="wf_1"), ["e1"]),
            (ExecutionFilter(owner_id="acc_1", statuses=FAILED), ["e2"]),
            (ExecutionFilter("acc_2", "wf_1", FAILED), ["e5"]),
            (ExecutionFilter(owner_id="acc_3"), []),
            (ExecutionFilter(statuses=(*FAILED, ExecutionStatus.COMPLETED)), ["e5", "e2"]),
            (ExecutionFilter(sources=(TriggerSource.WEBHOOK,)), ["e4", "e3"]),
            (ExecutionFilter("acc_1", sources=(TriggerSource.WEBHOOK,)), ["e4"]),
            (ExecutionFilter(since=at(3)), ["e5", "e4", "e3"]),
            (ExecutionFilter(until=at(3)), ["e2", "e1"]),
            (ExecutionFilter("acc_1", since=at(2), until=at(4)), ["e2"]),
            (ExecutionFilter(workflow_id="wf_1", oldest_first=True), ["e1", "e3", "e5"]),
            (ExecutionFilter(statuses=(*FAILED, ExecutionStatus.CANCELLED)), ["e5", "e2"]),
            (ExecutionFilter(statuses=OPEN), ["e4", "e3", "e1"]),
            (ExecutionFilter("acc_1", statuses=OPEN, sources=(TriggerSource.WEBHOOK,)), ["e4"]),
            (ExecutionFilter(id_end="3"), ["e3"]),
            (ExecutionFilter("acc_1", id_end="e4"), ["e4"]),
            (ExecutionFilter("acc_2", id_end="4"), []),
            (ExecutionFilter(id_end="%"), []),
            (ExecutionFilter(reference="R"), ["e5", "e3", "e1"]),
            (ExecutionFilter("acc_1", reference="R"), ["e1"]),
            (ExecutionFilter("acc_2", "wf_1", FAILED, reference="R"), ["e5"]),
            (ExecutionFilter(reference="R", since=at(3), oldest_first=True), ["e3", "e5"]),
            (ExecutionFilter(reference="r"), []),
        ],
    )
    async def test_every_field_of_an_execution_filter_narrows(
        self, store: Store, given_where: ExecutionFilter, given_expected: list[str]
    ) -> None:
        """A list contains exactly the executions that match every field that is set."""
        failed, hook = ExecutionStatus.FAILED, {"trigger_source": TriggerSource.WEBHOOK}
        rows: list[dict[str, Any]] = [
            {"owner_id": "acc_1", "workflow_id": "wf_1", "reference": "R"},
            {"owner_id": "acc_1", "workflow_id": "wf_2", "status": failed},
            {"owner_id": "acc_2", "workflow_id": "wf_1", "reference": "R", **hook},
            {"owner_id": "acc_1", "workflow_id": "wf_2", **hook},
            {"owner_id": "acc_2", "workflow_id": "wf_1", "reference": "R", "status": failed},
        ]
        made = (
            make.execution(f"e{number}", accepted_at=at(number), **row)
            for number, row in enumerate(rows, start=1)
        )
        await keep(store, *made)
        async with store.view() as view:
            found = await view.executions.list(given_where, ALL)
        assert (ids(found), found.total) == (given_expected, len(given_expected))

    async def test_a_list_of_executions_carries_no_outputs(self, store: Store) -> None:
        """
        Listed executions have no outputs, no loop items and no `trigger`, and no variables unless
        some are secret.
        """
        secret, plain = samples.EXECUTION, evolve(samples.EXECUTION, id="exec_2", secrets=())
        await keep(store, secret, plain)
        async with store.view() as view:
            found = await view.executions.list(ExecutionFilter(), ALL)
        results = secret.step_results.items()
        bare = {name: evolve(result, output=None, items=None) for name, result in results}
        shown = evolve(secret, version=1, output=None, step_results=bare, trigger={})
        assert found.rows == (evolve(shown, id="exec_2", secrets=(), variables={}), shown)

    async def test_the_last_redrive_of_an_execution_is_found(self, store: Store) -> None:
        """`redriven_as` finds the stored redrive that was accepted last; None if there is none."""
        of_old = {"redrive_of": "exec_1"}
        await keep(store, make.execution("exec_1"), make.execution("exec_2", redrive_of="exec_3"))
        await keep(store, make.execution("exec_5", accepted_at=at(5), **of_old))
        await keep(store, make.execution("exec_4", accepted_at=at(5), **of_old))
        await keep(store, make.execution("exec_6", accepted_at=at(4), **of_old))
        async with store.unit() as unit:
            assert await unit.executions.redriven_as("exec_1") == "exec_5"
            assert await unit.executions.redriven_as("exec_2") is None
            unit.purge("exec_5")
            assert await unit.executions.redriven_as("exec_1") == "exec_4"
            await unit.commit()
        async with store.view() as view:
            assert await view.executions.redriven_as("exec_1") == "exec_4"

    async def test_executions_by_time(self, store: Store) -> None:
        """
        Executions that are due, whose grace is over, or that ended before an instant, are found
        oldest first, up to a limit.
        """
        interrupted, done = ExecutionStatus.INTERRUPTED, ExecutionStatus.COMPLETED
        await keep(
            store,
            make.execution("i2", status=interrupted, due_at=store.now()),
            make.execution("i1", status=interrupted, due_at=at(-1)),
            make.execution("i3", status=interrupted, due_at=later(store.now(), HOUR)),
            make.execution("i4", status=interrupted, due_at=None),
            make.execution("d2", status=done, due_at=None, completed_at=at(2)),
            make.execution("d1", status=done, due_at=None, completed_at=at(1)),
            make.execution("d3", status=done, due_at=None, completed_at=at(3)),
        )
        async with store.view() as view:
            assert await view.executions.next_due() is None
            assert ids(await view.executions.grace_over(9)) == ["i1", "i2"]
            assert ids(await view.executions.grace_over(1)) == ["i1"]
            assert list(await view.executions.ended_before(at(3), 9)) == ["d1", "d2"]
            assert list(await view.executions.ended_before(at(9), 1)) == ["d1"]
        await keep(
            store,
            make.execution("p9", due_at=at(9)),
            make.execution("p8", due_at=at(8), status=ExecutionStatus.RUNNING),
            make.execution("p7", due_at=at(7), worker="w"),
        )
        async with store.view() as view:
            assert await view.executions.next_due() == at(8)

    async def test_accounts_keys_and_webhooks_are_listed(self, store: Store) -> None:
        """Lists contain the records of the given owner or account, newest first."""
        for number in (1, 2, 3):
            owner, made = f"acc_{number % 2}", at(number)
            await keep(
                store,
                make.account(f"acc_{number}", created_at=made),
                make.key(f"key_{number}", account_id=owner, created_at=made),
                make.session(f"session_{number}", account_id=owner, created_at=made),
                make.webhook(
                    f"wh_{number}",
                    owner_id=owner,
                    workflow_id=f"wf_{number // 2}",
                    created_at=made,
                ),
            )
        async with store.view() as view:
            accounts = await view.accounts.list(PageRequest(1, 2))
            assert (ids(accounts), accounts.total) == (["acc_3", "acc_2"], 3)
            assert ids(await view.keys.of_account("acc_1")) == ["key_3", "key_1"]
            assert ids(await view.sessions.of_account("acc_1")) == ["session_3", "session_1"]
            one = await view.webhooks.of_owner("acc_1", PageRequest(2, 1))
            assert (ids(one), one.total) == (["wh_1"], 2)
            assert ids(await view.webhooks.of_owner(None, ALL)) == ["wh_3", "wh_2", "wh_1"]
            assert ids(await view.webhooks.all_of_owner("acc_1")) == ["wh_3", "wh_1"]
            assert ids(await view.webhooks.of_workflow("wf_1")) == ["wh_3", "wh_2"]

    async def test_workflows_are_visible_to_owner_and_sharers(self, store: Store) -> None:
        """
        A list contains own and shared workflows by name, then id, each once, and no other
        workflows.
        """
        await keep(
            store,
            make.workflow("wf_1", name="b"),
            make.workflow("wf_2", name="a"),
            make.workflow("wf_3", name="B", owner_id="acc_2"),
            make.workflow("wf_4", name="b", owner_id="acc_3"),
            make.workflow("wf_5", name="c", owner_id="acc_3"),
            make.share("wf_3", "acc_1"),
            make.share("wf_1", "acc_1"),
            make.share("wf_4", "acc_1", permission=Permission.EDIT),
            make.share("wf_2", "acc_2"),
        )
        async with store.view() as view:
            mine = await view.workflows.visible_to("acc_1", PageRequest(1, 3))
            assert (ids(mine), mine.total) == (["wf_3", "wf_2", "wf_1"], 4)
            rest = await view.workflows.visible_to("acc_1", PageRequest(2, 3))
            assert (ids(rest), rest.total) == (["wf_4"], 4)
            assert ids(await view.workflows.visible_to("acc_2", ALL)) == ["wf_3", "wf_2"]
            assert ids(await view.workflows.visible_to("acc_9", ALL)) == []
            assert (await view.workflows.list(ALL)).total == 5
            shares = await view.shares.of_workflow("wf_4")
            assert [share.account_id for share in shares] == ["acc_1"]

    async def test_definitions_in_use(self, store: Store) -> None:
        """
        The definitions in use are the current definition of each workflow, and the definitions of
        unfinished executions. PK-6.
        """
        running, ended = ExecutionStatus.RUNNING, ExecutionStatus.COMPLETED
        await keep(
            store,
            *(make.snapshot("wf_1", revision) for revision in (1, 2, 3, 4, 10)),
            *(make.snapshot("gone", revision) for revision in (1, 2)),
            make.workflow("wf_1", revision=4),
            make.execution("e1", workflow_id="wf_1", revision=2, status=running),
            make.execution("e2", workflow_id="wf_1", revision=3, status=ended),
            make.execution("e3", workflow_id="gone", revision=1),
            make.execution("e4", workflow_id="gone", revision=1),
        )
        async with store.view() as view:
            found = await view.definitions.in_use()
        named = [(one.workflow_id, one.revision) for one in found]
        assert named == [("gone", 1), ("wf_1", 2), ("wf_1", 4)]
        assert all(one.version == 1 for one in found)

    async def test_approvals_are_visible_to_those_who_may_see_them(self, store: Store) -> None:
        """
        An approval is visible to owners and named approvers; if none are named, to accounts with
        EDIT.
        """
        theirs = {"owner_id": "acc_8", "workflow_owner_id": "acc_9"}
        named = {**theirs, "approvers": (" Ann@Example.org", "acc_5", " ")}
        await keep(
            store,
            make.approval("a1", created_at=at(1)),
            make.approval("a2", created_at=at(2), **{**theirs, "owner_id": "acc_1"}),
            make.approval("a3", created_at=at(3), **{**theirs, "workflow_owner_id": "acc_1"}),
            make.approval("a4", created_at=at(4), workflow_id="wf_2", **theirs),
            make.approval("a5", created_at=at(5), workflow_id="wf_2", **named),
            make.approval("a6", created_at=at(6), **theirs),
            make.share("wf_2", "acc_4", permission=Permission.EDIT),
            make.share("wf_2", "acc_3", permission=Permission.EXECUTE),
        )
        expected = {
            (None, None): ["a6", "a5", "a4", "a3", "a2", "a1"],
            ("acc_1", "one@example.org"): ["a3", "a2", "a1"],
            ("acc_2", "ann@example.org"): ["a5"],
            ("acc_3", "three@example.org"): [],
            ("acc_4", "four@example.org"): ["a4"],
            ("acc_5", None): ["a5"],
        }
        async with store.view() as view:
            for (account_id, email), shown in expected.items():
                found = await view.approvals.list(ApprovalFilter(account_id, email), ALL)
                assert (ids(found), found.total) == (shown, len(shown))
            page = await view.approvals.list(ApprovalFilter("acc_1"), PageRequest(2, 2))
            assert (ids(page), page.total) == (["a1"], 3)

    async def test_approvals_that_wait_for_somebody(self, store: Store) -> None:
        """
        A list contains the open approvals that the account may give and has not given. Its own
        approvals are left out if self-approval is forbidden.
        """
        barred = {"allow_self_approval": False, "required_approvals": 2}
        elsewhere = {"owner_id": "acc_2", "workflow_id": "wf_2"}
        said = {"assents": (Assent("ann", "acc_1", NOW),), "required_approvals": 2}
        by_link = {**said, "assents": (Assent("ann", "mailto:ann@example.org", NOW),)}
        await keep(
            store,
            make.approval("a1", created_at=at(1)),
            make.approval("a2", created_at=at(2), **barred),
            make.approval("a3", created_at=at(3), **said),
            make.approval("a4", created_at=at(4), status=ApprovalStatus.APPROVED),
            make.approval("a5", created_at=at(5), owner_id="acc_2", approvers=("ANN@example.org",)),
            make.approval("a6", created_at=at(6), approvers=("acc_2",)),
            make.approval("a7", created_at=at(7), expires_at=at(8), **elsewhere, **barred),
            make.approval("a8", created_at=at(8), **by_link),
        )
        mine = ApprovalFilter("acc_1", "ann@example.org", waiting=True)
        async with store.view() as view:
            for where, shown in (
                (mine, ["a7", "a5", "a1"]),
                (evolve(mine, oldest_first=True), ["a1", "a5", "a7"]),
                (evolve(mine, workflow_id="wf_2"), ["a7"]),
                (evolve(mine, soonest=True), ["a7", "a1", "a5"]),
                (evolve(mine, waiting=False, agreed=True), ["a8", "a3"]),
                (evolve(mine, since=at(2), until=at(7)), ["a5"]),
                (evolve(mine, waiting=False, workflow_id="wf_2"), ["a7"]),
                (ApprovalFilter("acc_2", execution_id="exec_1"), ["a7", "a6", "a5"]),
                (ApprovalFilter("acc_3", execution_id="exec_1"), []),
            ):
                assert ids(await view.approvals.list(where, ALL)) == shown

    async def test_some_accounts_and_keys_are_found_at_once(self, store: Store) -> None:
        """Existing accounts and keys are found by id; unknown ids are left out."""
        accounts = [make.account(f"acc_{n}", email=f"{n}@example.org") for n in (3, 1, 2)]
        await keep(store, *accounts, make.key("key_1"), make.key("key_2"))
        async with store.view() as view:
            found = await view.some(Account, {"acc_3", "acc_1", "acc_9"})
            assert [one.id for one in found] == ["acc_1", "acc_3"]
            assert [one.id for one in await view.some(ApiKey, ["key_2"])] == ["key_2"]
            assert [*await view.some(ApiKey, ["key_9"]), *await view.some(ApiKey, [])] == []

    async def test_callbacks_that_are_due(self, store: Store) -> None:
        """
        Unsettled callbacks are found from their due instant on, earliest first, up to a limit.
        """
        await keep(
            store,
            make.callback("e1", due_at=store.now()),
            make.callback("e2", due_at=at(-1)),
            make.callback("e3", due_at=None),
            make.callback("e4", due_at=later(store.now(), HOUR)),
        )
        async with store.view() as view:
            assert ids(await view.callbacks.due(9)) == ["e2", "e1"]
            assert ids(await view.callbacks.due(1)) == ["e2"]
            assert await view.callbacks.next_due() == at(-1)

    async def test_approvals_by_status_and_expiry(self, store: Store) -> None:
        """Only PENDING approvals expire. They are found from their expiry on, earliest first."""
        await keep(
            store,
            make.approval("a1", expires_at=at(10), created_at=at(1)),
            make.approval("a2", expires_at=at(5), created_at=at(2), execution_id="exec_2"),
            make.approval("a3", expires_at=at(1), created_at=at(3), status=ApprovalStatus.REJECTED),
        )
        async with store.view() as view:
            assert ids(await view.approvals.due(at(10), 9)) == ["a2", "a1"]
            assert ids(await view.approvals.due(at(9), 9)) == ["a2"]
            asked = view.approvals
            assert (await asked.next_deadline(), await asked.open(1)) == (at(5), (1, at(1)))
            pending = ApprovalFilter("acc_1", statuses=(ApprovalStatus.PENDING,))
            assert ids(await view.approvals.list(pending, ALL)) == ["a2", "a1"]
            assert ids(await view.approvals.of_execution("exec_1")) == ["a3", "a1"]

    async def test_reminders_are_due_at_their_instant(self, store: Store) -> None:
        """
        The next unsent reminder of each PENDING approval is found when due, earliest first. AP-20.
        """
        expiring = {"expires_at": at(90)}
        told = make.approval("a2", reminders=(at(3), at(40)), **expiring)
        await keep(
            store,
            make.approval("a1", reminders=(at(5), at(20)), **expiring),
            told,
            make.approval("a3", reminders=(at(1),), reminded=1, **expiring),
            make.approval("a4", reminders=(at(2),), status=ApprovalStatus.CANCELLED),
            make.approval("a5", **expiring),
        )
        async with store.view() as view:
            assert ids(await view.approvals.reminders_due(at(2), 9)) == []
            assert ids(await view.approvals.reminders_due(at(5), 9)) == ["a2", "a1"]
            assert ids(await view.approvals.reminders_due(at(5), 1)) == ["a2"]
            assert await view.approvals.next_deadline() == at(3)
        await keep(store, evolve(told, reminded=1, version=1))
        async with store.view() as view:
            assert ids(await view.approvals.reminders_due(at(50), 9)) == ["a1", "a2"]
            assert await view.approvals.next_deadline() == at(5)

    async def test_tallies_add_up_however_many_count_at_once(
        self, store: Store, another: Store
    ) -> None:
        """Units never conflict over counts: every committed unit is counted."""
        await keep(store, make.webhook())

        async def count(number: int) -> None:
            async with (store, another)[number % 2].unit() as unit:
                unit.tally("wh_1", "2023-11-14", 202, at(number))
                if number % 4 == 0:
                    unit.tally("wh_1", "2023-11-15", 401, at(number))
                await asyncio.sleep(0)
                await unit.commit()

        await asyncio.gather(*(count(number) for number in range(40)))
        async with store.view() as view:
            found = await view.webhooks.tallies("wh_1")
            webhook = await view.get(Webhook, "wh_1")
        assert [(tally.date, tally.status, tally.count) for tally in found] == [
            ("2023-11-14", 202, 40),
            ("2023-11-15", 401, 10),
        ]
        assert [tally.last_at for tally in found] == [at(39), at(36)]
        assert webhook is not None
        assert webhook.version == 1

    async def test_the_last_deliveries_are_kept_by_their_credentials(
        self, store: Store, another: Store
    ) -> None:
        """
        The newest 50 deliveries with valid credentials and the newest 50 without are kept
        unchanged.
        """
        last = make.delivery("dlv_200", status=409, payload={"a": [1, {"b": None}]}, reason="full")

        async def deliver(number: int) -> None:
            async with (store, another)[number % 2].unit() as unit:
                for good in (True, False):
                    id = f"dlv_{number:03}{'g' if good else 'b'}"
                    unit.deliver(make.delivery(id, authenticated=good, at=at(number)))
                await asyncio.sleep(0)
                await unit.commit()

        await asyncio.gather(*(deliver(number) for number in range(60)))
        async with store.unit() as unit:
            unit.deliver(last)
            assert (await unit.webhooks.deliveries("wh_1"))[0] == last
            await unit.commit()
        async with store.view() as view:
            found = await view.webhooks.deliveries("wh_1")
        assert found[0] == last
        assert [one.id for one in found[1:]] == sorted(
            [*(f"dlv_{n:03}g" for n in range(11, 60)), *(f"dlv_{n:03}b" for n in range(10, 60))],
            reverse=True,
        )
