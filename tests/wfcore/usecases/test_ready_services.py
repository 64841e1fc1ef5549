"""Services that are ready to use: in memory, in a folder, and behind a door without a loop."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

import wfcore
from wfcore import (
    ApprovalStep,
    CodeStep,
    Definition,
    Engine,
    FunctionRunner,
    InvalidInput,
    Language,
    Policy,
    Principal,
    apply_workflow,
    ensure_account,
    find_account,
    read_execution,
    start_execution,
    wait_for_rest,
)
from wfcore.accounts import create_account, list_accounts
from wfcore.errors import NotReady
from wfcore.memory import MemoryStore
from wfcore.model.access import OPERATOR, Tier
from wfcore.model.execution import ExecutionStatus
from wfcore.model.page import PageRequest
from wfcore.ports.runtime import Job, Say, StepEnd
from wfcore.testing.fakes import CountingIds, ManualClock, NotedHints
from wfcore.testing.fakes_running import in_turn, store_in_memory
from wfserver.settings.names import FIRST_KEY_FILE
from wfserver.settings.record import settings_from

HELLO = Definition("Hello", (CodeStep("greet", Language.COMMAND, command=("greet", "you")),))
LONG_MS = 60_000


def greet(who: str) -> str:
    return f"Hello {who}"


async def run_hello(services: wfcore.Services) -> wfcore.Execution:
    ann = Principal(await ensure_account(services, "ann@example.org"))
    hello = await apply_workflow(services, ann.account.id, HELLO)
    started = await start_execution(services, ann, hello.id, {})
    async with Engine(services, FunctionRunner(greet)):
        return await wait_for_rest(services, ann, started.execution_id, LONG_MS)


async def test_in_memory_everything_is_ready() -> None:
    """Services without anything to open, and an engine that runs functions on them."""
    run = await run_hello(wfcore.in_memory())
    assert (run.status, run.output) == (ExecutionStatus.COMPLETED, "Hello you")


async def test_every_default_can_be_replaced(tmp_path: Path) -> None:
    """By keyword, in memory and in a folder: what was given is what is used."""
    parts = {"clock": ManualClock(), "ids": CountingIds(), "wakeup": NotedHints()}
    policy, store = Policy(places=3), store_in_memory()
    services = wfcore.in_memory(**parts, policy=policy, store=store)  # type: ignore[arg-type]
    assert services.store is store
    assert services.policy.places == 3
    assert all(getattr(services, name) is part for name, part in parts.items())
    async with wfcore.on_sqlite(tmp_path, **parts, store=store, signing_key=b"k" * 32) as there:  # type: ignore[arg-type]
        assert there.store is store
        assert there.signing_key == b"k" * 32
        await ensure_account(there, "ann@example.org")
        assert all(getattr(there, name) is part for name, part in parts.items())
    assert (await find_account(services, "ann@example.org")).email == "ann@example.org"
    with pytest.raises(TypeError):
        wfcore.in_memory(shop=1)  # type: ignore[call-arg]


async def test_on_sqlite_what_was_accepted_is_done_later(tmp_path: Path) -> None:
    """Accepted by services that end before anything is done, and done by others. Twice as well."""
    async with wfcore.on_sqlite(tmp_path / "orders") as services:
        ann = Principal(await ensure_account(services, "ann@example.org"))
        hello = await apply_workflow(services, ann.account.id, HELLO)
        started = await start_execution(services, ann, hello.id, {})
    async with (
        wfcore.on_sqlite(tmp_path / "orders") as services,
        wfcore.on_sqlite(tmp_path / "orders") as others,
        Engine(services, FunctionRunner(greet)),
    ):
        run = await wait_for_rest(others, OPERATOR, started.execution_id, LONG_MS)
        assert run.output == "Hello you"
        assert (await ensure_account(others, "Ann@example.org")).id == ann.account.id
        assert (await list_accounts(services, PageRequest())).total == 1


async def test_settings_of_the_environment_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program says itself what it wants; what a server beside it is told is not its business."""
    monkeypatch.setenv("WFCORE_CONCURRENCY", "0")
    async with wfcore.on_sqlite(tmp_path) as services:
        assert services.policy == Policy()


@pytest.mark.parametrize(("made_by_up", "plan"), [(True, Tier.ENTERPRISE), (False, Tier.FREE)])
async def test_a_folder_keeps_its_plan_of_new_accounts(
    tmp_path: Path, made_by_up: bool, plan: Tier
) -> None:
    """A program gives new accounts the plan that the server gives them in the same data folder."""
    async with wfcore.on_sqlite(tmp_path):
        pass
    if made_by_up:
        (tmp_path / FIRST_KEY_FILE).write_text("a key\n")
    assert settings_from({}, data=str(tmp_path)).policy.default_plan is plan
    async with wfcore.on_sqlite(tmp_path) as services:
        assert (await create_account(services, "ann@example.org")).plan is plan
    async with wfcore.on_sqlite(tmp_path, policy=Policy(default_plan=Tier.TEAM)) as services:
        assert (await create_account(services, "bob@example.org")).plan is Tier.TEAM


async def test_an_account_is_made_once_by_all_who_need_it() -> None:
    """Of many at once one makes it, and all have it."""
    services = wfcore.in_memory()
    found = await asyncio.gather(*(ensure_account(services, "a@example.org") for _ in range(20)))
    assert len({one.id for one in found}) == 1


async def test_an_engine_that_can_start_nothing_is_not_ready() -> None:
    """It says what does not run and what the machine lacks, until a step could be started again."""
    services = wfcore.in_memory()
    engine = Engine(services, FunctionRunner(named={}))
    idle = "the worker does not run; the scheduler does not run"
    for lacking, told in (
        ("no memory", f"{idle}; steps cannot be started: no memory"),
        (None, idle),
    ):
        engine._worker.shortages.note("code", lacking)
        with pytest.raises(NotReady) as refused:
            engine.check()
        assert str(refused.value) == told


async def test_what_one_step_lacks_is_no_shortage_of_the_machine() -> None:
    """Its attempt begins again later, and the engine is ready for others all the while. EX-27."""

    class Runner:
        async def run(self, job: Job, say: Say) -> StepEnd:
            assert not engine.gauges()["wfcore_machine_short"]
            if job.postponed:
                return StepEnd("done")
            return StepEnd(postponed="no such package", lasting=True, alone=True)

    services = wfcore.in_memory()
    ann = Principal(await ensure_account(services, "ann@example.org"))
    hello = await apply_workflow(services, ann.account.id, HELLO)
    async with Engine(services, Runner()) as engine:
        run_id = (await start_execution(services, ann, hello.id, {})).execution_id
        run = await wait_for_rest(services, OPERATOR, run_id, LONG_MS)
    assert run.step_results["greet"].attempts == 1
    assert (run.status, engine.gauges()["wfcore_starts_short_total"]) == ("COMPLETED", 0)


async def test_a_leaving_engine_gives_back_what_it_had(tmp_path: Path) -> None:
    """Steps may end while it drains; no task is left, and nothing begins any more."""
    before = asyncio.all_tasks()
    services = wfcore.in_memory()
    ann = Principal(await ensure_account(services, "ann@example.org"))
    hello = await apply_workflow(services, ann.account.id, HELLO)
    began, may_end = threading.Event(), threading.Event()

    def slow(who: str) -> str:
        began.set()
        assert may_end.wait(30)
        return who

    async with Engine(services, FunctionRunner(named={"greet": slow})) as engine:
        first = await start_execution(services, ann, hello.id, {})
        assert await asyncio.to_thread(began.wait, 30)
        engine.check()
        assert engine.gauges()["wfcore_executions_running"] == 1
        may_end.set()
    second = await start_execution(services, ann, hello.id, {})
    assert (await read_execution(services, ann, first.execution_id)).output == "you"
    assert (await read_execution(services, ann, second.execution_id)).status == "PENDING"
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


def test_a_heartbeat_that_comes_too_late_is_no_policy() -> None:
    """Leases that end between two heartbeats would take work away from who does it."""
    with pytest.raises(InvalidInput, match="heartbeat_ms: must be less than lease_ms"):
        Policy(lease_ms=1_000)  # type: ignore[arg-type]


# The door


def test_a_script_needs_no_event_loop(tmp_path: Path) -> None:
    """Use cases by plain calls, from several threads at once; what they raise is raised here."""
    with wfcore.sync.on_sqlite(tmp_path, FunctionRunner(greet)) as do:
        ann = Principal(do(ensure_account, "ann@example.org"))
        hello = do(apply_workflow, ann.account.id, HELLO)
        outputs: list[object] = []

        def one() -> None:
            started = do(start_execution, ann, hello.id, {})
            outputs.append(do(wait_for_rest, ann, started.execution_id, LONG_MS).output)

        threads = [threading.Thread(target=one) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outputs == ["Hello you"] * 4
        with pytest.raises(wfcore.WfError, match="Execution not found"):
            do(read_execution, ann, "exec_none")
    with pytest.raises(RuntimeError, match=r"this wfcore\.sync handle is closed"):
        do(ensure_account, "ann@example.org")


def test_a_function_may_use_the_handle() -> None:
    """A step in a thread may use it; in the handle's own loop it would wait for itself."""
    handles: list[wfcore.sync.Handle] = []

    def count() -> int:
        return handles[0](list_accounts, PageRequest()).total

    async def count_wrongly() -> int:
        return handles[0](list_accounts, PageRequest()).total

    steps = tuple(
        CodeStep(name, Language.COMMAND, command=(name,), continue_on_error=True)
        for name in ("count", "count_wrongly")
    )
    with wfcore.sync.in_memory(FunctionRunner(count, count_wrongly)) as do:
        handles.append(do)
        ann = Principal(do(ensure_account, "ann@example.org"))
        flow = do(apply_workflow, ann.account.id, Definition("Count", steps))
        started = do(start_execution, ann, flow.id, {})
        results = do(wait_for_rest, ann, started.execution_id, LONG_MS).step_results
    assert results["count"].output == 1
    wrong = results["count_wrongly"].error or ""
    assert "this is the event loop of this wfcore.sync handle" in wrong


def test_a_handle_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    """An error of opening is raised where the handle is opened."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(Exception, match="is a file, not a folder"),
        wfcore.sync.on_sqlite(tmp_path / "file"),
    ):
        pass
    with pytest.raises(ZeroDivisionError), wfcore.sync.in_memory():
        raise ZeroDivisionError


def test_a_forked_process_opens_a_handle_of_its_own() -> None:
    """The child lacks the handle's thread, and gets an error instead of waiting for ever."""
    with wfcore.sync.in_memory() as do:
        do._process = os.getpid() - 1
        with pytest.raises(RuntimeError, match="before a fork"):
            do(list_accounts, PageRequest())


def test_yaml_is_read_with_lines() -> None:
    """Templates and schedules are looked at, too."""
    text = "name: Hello\nsteps:\n  - name: ask\n    kind: manual_approval\n"
    assert wfcore.definition_from_yaml(text).steps == (ApprovalStep("ask"),)
    with pytest.raises(wfcore.InvalidDefinition, match=r"a.yaml: line 5: steps.0..message: unk"):
        wfcore.definition_from_yaml(text + "    message: '{{ who }}'", "a.yaml")


def test_a_store_of_ones_own_is_not_closed(tmp_path: Path) -> None:
    """Its owner opened it, and closes it."""
    closed: list[bool] = []

    class Watched(MemoryStore):
        async def close(self) -> None:
            closed.append(True)

    store = Watched(in_turn, now=ManualClock().service_now)
    with wfcore.sync.on_sqlite(tmp_path, store=store) as do:
        do(ensure_account, "ann@example.org")
    assert closed == []
