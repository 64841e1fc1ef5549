"""Output lines, of every execution: bounded, masked, streamed only if wanted; and errors."""

import pytest

from wfcore.errors import LeaseLost
from wfcore.model.event import EventKind
from wfcore.model.execution import RefusedFile
from wfcore.model.workflow import Definition, Retry, Variable
from wfcore.ports.runtime import StepEnd
from wfcore.rules.masking import secrets_of
from wfcore.time import SECOND
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.executions.step_jobs import MOST_LOGGED
from wfcore.usecases.upkeep.sweeping import recover
from wfcore.usecases.workflows import workflows

from .conftest import World, code


async def test_the_lines_of_each_attempt_are_kept_with_its_end(world: World) -> None:
    """By step, attempt and stream, in order, in the unit of the end; the stream has none. EX-28."""
    ann = await world.account()
    flow = await world.workflow(ann, code("one", retry=Retry(2)), code("two"))
    run_id = await world.start(ann, flow)
    lease, _ = await world.take()
    before = await executions.read_execution(world.services, ann, run_id)
    lines = (("stdout", "a\nb\n"), ("stderr", "oh\n"))
    await world.finish(lease, "one", error="no", lines=lines)
    after = await executions.read_execution(world.services, ann, run_id)
    assert after.version == before.version + 1
    world.clock.advance(60_000)
    lease, _ = await world.take("w2")
    await world.finish(lease, "one", lines=(("stdout", "c"),))
    await world.finish(lease, "two")
    run, found, next = await executions.read_logs(world.services, ann, run_id)
    told = [tuple(event.data[name] for name in ("attempt", "stream", "text")) for event in found]
    assert told == [(1, "stdout", "a\nb\n"), (1, "stderr", "oh\n"), (2, "stdout", "c")]
    assert {event.data["step"] for event in found} == {"one"}
    assert (await executions.read_logs(world.services, ann, run_id, next))[1:] == ([], next)
    assert (await executions.read_logs(world.services, ann, run_id, 0, "two"))[1] == []
    _, events = await executions.read_events(world.services, ann, run_id, 0)
    assert EventKind.STEP_LOG not in {event.kind for event in events}
    assert events[-1].number == run.events


async def test_a_long_way_to_the_lines_of_one_step(world: World) -> None:
    """They are found behind more of another step's than one look has. EX-28."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, _ = await world.take()
    await world.finish(lease, "one", lines=[("stdout", "x\n")] * 7)
    await world.finish(lease, "two", lines=(("stdout", "y\n"),))
    logs = await executions.read_logs(world.services, ann, run_id, 0, "two", 3)
    assert [event.data["text"] for event in logs[1]] == ["y\n"]


async def test_lines_are_bounded_and_masked(world: World) -> None:
    """1 MiB of an attempt, in pieces of whole lines, and no secret in any of them. EX-28, SC-1."""
    ann = await world.account()
    token = Variable("token", default="hunter2-hunter2", has_default=True, secret=True)
    run_id = await world.start(
        ann, await world.workflow(ann, code("one"), variables={"token": token})
    )
    lease, _ = await world.take()
    line = "hunter2-hunter2 and sixteen more\n"
    lines = (("stdout", line * 60_000), ("stderr", "not kept\n"))
    await world.finish(lease, "one", lines=lines)
    after, texts = 0, list[str]()
    while found := (answer := await executions.read_logs(world.services, ann, run_id, after))[1]:
        after = answer[2]
        texts += [str(event.data["text"]) for event in found]
    whole = "".join(texts)
    assert whole.startswith("*** and sixteen more\n*** and")
    assert whole.endswith("\n[no further lines are stored]\n")
    assert MOST_LOGGED < len(whole) < MOST_LOGGED + 40
    assert "hunter2" not in whole
    assert max(map(len, texts)) <= 65_536
    assert all(text.endswith("\n") for text in texts)


async def test_what_did_not_begin_has_no_lines_and_retention_takes_them(world: World) -> None:
    """A postponed attempt wrote nothing; what is purged leaves none. EX-27, EX-28."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    await world.finish(lease, "one", postponed="no process", lines=(("stdout", "x"),))
    assert (await executions.read_logs(world.services, ann, run_id))[1] == []
    world.clock.advance(60_000)
    lease, _ = await world.take("w2")
    await world.finish(lease, "one", lines=(("stdout", "x"),))
    assert (await executions.read_logs(world.services, ann, run_id))[1]
    async with world.services.store.unit() as unit:
        unit.purge(run_id)
        await unit.commit()
    async with world.services.store.view() as view:
        assert not await view.logs.of_execution(run_id, 0, 9)


async def test_monitored_lines_are_read_from_the_events(world: World) -> None:
    """They are kept once, as events, among others that are no lines. EX-28."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")), monitored=True)
    lease, _ = await world.take()
    await worker.log_lines(world.services, lease, "one", "stdout", "while it ran\n")
    await world.finish(lease, "one", lines=(("stdout", "said already"),))
    (line,) = (await executions.read_logs(world.services, ann, run_id))[1]
    assert line.data == {"step": "one", "attempt": 1, "stream": "stdout", "text": "while it ran\n"}


async def test_no_line_shows_what_its_step_was_given_in_secret(world: World) -> None:
    """Named secrets are masked in lines that come with the end, too. EX-28, SC-6."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    end = StepEnd(lines=(("stderr", "given s3cret-thing\n"),))
    hidden = secrets_of(["s3cret-thing"])
    await worker.complete_step(world.services, lease, "one", end, hidden=hidden)
    (line,) = (await executions.read_logs(world.services, ann, run_id))[1]
    assert line.data["text"] == "given ***\n"


async def test_lines_are_found_by_a_text_and_told_apart_by_stream(world: World) -> None:
    """Of what was written at once only the lines with the text, in whatever case. EX-28."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    lines = (("stdout", "Disk full\nfine\n"), ("stderr", "oh\nno: disk FULL"), ("stdout", "fine\n"))
    await world.finish(lease, "one", lines=lines)

    async def texts(**which: str) -> list[object]:
        found = await executions.read_logs(world.services, ann, run_id, **which)  # type: ignore[arg-type]
        return [event.data["text"] for event in found[1]]

    assert await texts(search="disk full") == ["Disk full\n", "no: disk FULL"]
    assert await texts(search="disk", stream="stderr") == ["no: disk FULL"]
    assert await texts(stream="stdout") == ["Disk full\nfine\n", "fine\n"]
    assert await texts(search="nothing of the kind") == []


async def test_what_was_refused_is_told_of_the_last_attempt_only(world: World) -> None:
    """What an attempt left and is no artifact is in its result until the next begins. CS-10."""
    ann = await world.account()
    again = code("one", retry=Retry(attempts=2, delay_ms=SECOND))
    run_id = await world.start(ann, await world.workflow(ann, again))
    lease, _ = await world.take()
    left = (RefusedFile("l", "a link"),)
    await world.finish(lease, "one", error="broken", refused=left)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.step_results["one"].refused == left
    world.clock.advance(2 * SECOND)
    lease, _ = await world.take()
    await world.finish(lease, "one", "done")
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.step_results["one"].refused == ()


async def test_a_secret_never_reaches_an_error(world: World) -> None:
    """The value of a secret variable is masked in a step's error."""
    ann = await world.account()
    token = Variable("token", secret=True, has_default=True, default="hunter2hunter2")
    definition = Definition("s", (code("one"),), (), {"token": token})
    workflow = await workflows.apply_workflow(world.services, ann.account.id, definition)
    run_id = await world.start(ann, workflow.id)
    lease, _ = await world.take()
    await world.finish(lease, "one", error="cannot log in with hunter2hunter2")
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.error == "Step 'one' failed: cannot log in with ***"


async def test_lines_are_kept_while_a_step_runs(world: World) -> None:
    """
    Of what nobody monitors, too: masked, in order with those of other ends, once although the
    answer of the store got lost, and no event. EX-28, SC-1.
    """
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    kept = 0
    hidden = secrets_of(["s3cret-thing"])
    for text in ("first\n", "the s3cret-thing\n"):
        told = world.services, lease, "one", (("stdout", text),), kept, hidden
        for _ in range(2):
            rows = await worker.keep_lines(*told)
        kept += rows
    run, found, last = await executions.read_logs(world.services, ann, run_id)
    assert [event.data["text"] for event in found] == ["first\n", "the ***\n"]
    await world.finish(lease, "one", lines=(("stdout", "last\n"),))
    ended, found, _ = await executions.read_logs(world.services, ann, run_id, last)
    assert [event.data["text"] for event in found] == ["last\n"]
    _, events = await executions.read_events(world.services, ann, run_id, 0)
    assert EventKind.STEP_LOG not in {event.kind for event in events}
    assert ended.events > run.events


async def test_who_lost_the_lease_keeps_no_lines(world: World) -> None:
    """A worker that was given up writes nothing beside the one after it. EX-16."""
    ann = await world.account()
    await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    world.clock.advance(60_000)
    assert await recover(world.services)
    with pytest.raises(LeaseLost):
        await worker.keep_lines(world.services, lease, "one", (("stdout", "late\n"),), 0)
