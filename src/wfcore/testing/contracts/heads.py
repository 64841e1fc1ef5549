"""The contract of a store about heads: executions whose large outputs were not read. ST-7."""

import json
from typing import Any

import pytest

from wfcore.errors import NotRead, Stale
from wfcore.model.execution import (
    Execution,
    ExecutionStatus,
    StepResult,
    StepStatus,
    aside_key,
    evolve,
    left_out,
)
from wfcore.model.json import Json
from wfcore.ports.store import Store, Unit, filled, head_of, texts_of
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

ROWS: Json = [{"id": number, "name": f"row {number}"} for number in range(4_000)]
TEXT: Json = "text and \N{EURO SIGN} " * 20_000


def with_results(**changes: Any) -> Execution:
    """An execution with several results, some of them large."""
    results = {
        "small": make.step_result(output={"n": 1}),
        "rows": make.step_result(output=ROWS),
        "loop": make.step_result(StepStatus.RUNNING, items=ROWS),
        "loop.0.inner": make.step_result(output=TEXT),
        "none": make.step_result(),
    }
    running = ExecutionStatus.RUNNING
    return make.execution(**{"step_results": results, "status": running, **changes})


async def stored(store: Store, id: str = "exec_1") -> Execution:
    """Return the whole execution."""
    async with store.view() as view:
        found = await view.get(Execution, id)
    assert found is not None
    return found


async def head(unit: Unit | Any, id: str = "exec_1") -> Execution:
    """Return the head of the execution, in which large values may be left out."""
    found = await head_of(unit, id)
    assert found is not None
    return found


def is_unread(run: Execution, key: str) -> bool:
    """Whether the head *run* has left the output of the step out."""
    return "output" in left_out(run.step_results[key])


def results_of(run: Execution) -> dict[str, StepResult]:
    return {**run.put_aside, **run.step_results}


class HeadContract:
    async def test_a_head_is_the_execution(self, store: Store) -> None:
        """The values in a head are the stored values, and the values left out can be read."""
        await keep(store, with_results())
        async with store.view() as view:
            run = await head(view)
            assert run.step_results["small"].output == {"n": 1}
            assert [*run.step_results] == [*with_results().step_results]
            assert run.completed_steps == with_results().completed_steps
            assert await filled(view, run) == await stored(store)
        assert results_of(await stored(store)) == results_of(with_results())

    async def test_some_outputs_of_a_head(self, store: Store) -> None:
        """The outputs of some steps can be read without the outputs of other steps."""
        await keep(store, with_results())
        async with store.view() as view:
            run = await filled(view, await head(view), {"loop"})
            assert run.step_results["loop"].items == ROWS
            run = await filled(view, run, {"loop.0.inner", "rows"})
            assert run.step_results["loop.0.inner"].output == TEXT
            assert run.step_results["rows"].output == ROWS
            assert await filled(view, run) == await stored(store)

    async def test_outputs_as_text(self, store: Store, another: Store) -> None:
        """Omitted outputs can be read as JSON text, unless the execution has changed meanwhile."""
        await keep(store, with_results())
        async with store.view() as view:
            run = await head(view)
            texts = await texts_of(view, run, {"rows", "loop.0.inner"})
            assert {key: json.loads(text) for key, text in texts.items()} == {
                key: with_results().step_results[key].output
                for key, result in run.step_results.items()
                if key in texts
            }
            assert {*texts} >= {key for key in ("rows", "loop.0.inner") if is_unread(run, key)}
            await keep(another, evolve(await stored(another), error="changed"))
            try:
                late = await texts_of(view, run, {"rows"})
            except Stale:
                return
            assert late.get("rows") in (None, texts.get("rows"))

    async def test_the_output_of_the_execution(self, store: Store) -> None:
        """The large output of the execution itself can be read without the outputs of steps."""
        completed = ExecutionStatus.COMPLETED
        await keep(store, with_results(status=completed, output=ROWS, completed_at=make.NOW))
        async with store.view() as view:
            run = await filled(view, await head(view), {None})
            assert run.output == ROWS
        assert (await stored(store)).output == ROWS

    async def test_a_head_can_be_stored(self, store: Store, another: Store) -> None:
        """A unit that stores a head changes only its own changes, and no output is lost."""
        await keep(store, with_results())
        for handle in (store, another):
            async with handle.unit() as unit:
                run = await head(unit)
                results = {**run.step_results, f"more {run.version}": make.step_result(output=TEXT)}
                results["loop"] = evolve(results["loop"], attempts=9)
                unit.put(evolve(run, step_results=results, error="changed"))
                await unit.commit()
        expected = dict(with_results().step_results)
        expected["loop"] = evolve(expected["loop"], attempts=9)
        expected |= {f"more {version}": make.step_result(output=TEXT) for version in (1, 2)}
        for handle in (store, another):
            found = await stored(handle)
            assert (found.error, found.version) == ("changed", 3)
            assert dict(found.step_results) == expected
            assert [*found.step_results] == [*expected]

    async def test_a_head_that_is_stored_twice_in_a_unit(self, store: Store) -> None:
        """A unit reads the stored outputs and the outputs that the unit puts."""
        await keep(store, with_results())
        async with store.unit() as unit:
            run = await head(unit)
            results = {**run.step_results, "more": make.step_result(output=TEXT)}
            unit.put(evolve(run, step_results=results))
            whole = await unit.get(Execution, "exec_1")
            assert whole is not None
            assert whole.step_results["rows"].output == ROWS
            assert whole.step_results["more"].output == TEXT
            again = await head(unit)
            unit.put(evolve(again, error="twice"))
            await unit.commit()
        found = await stored(store)
        assert (found.error, found.version) == ("twice", 3)
        assert found.step_results["more"].output == TEXT
        assert found.step_results["loop"].items == ROWS

    async def test_a_large_value_that_is_replaced(self, store: Store) -> None:
        """A new value replaces a value that was not read; the other value in the same row stays."""
        await keep(store, with_results())
        async with store.unit() as unit:
            run = await head(unit)
            changed = {
                "rows": evolve(run.step_results["rows"], output="now small"),
                "loop": evolve(run.step_results["loop"], output=TEXT),
            }
            unit.put(evolve(run, step_results={**run.step_results, **changed}))
            await unit.commit()
        found = (await stored(store)).step_results
        assert found["rows"] == make.step_result(output="now small")
        assert found["loop"] == make.step_result(StepStatus.RUNNING, items=ROWS, output=TEXT)

    async def test_an_end_that_a_head_is_given(self, store: Store) -> None:
        """
        An execution that a unit ends through its head keeps every output, also after a later write.
        """
        await keep(store, with_results())
        async with store.unit() as unit:
            run = await head(unit)
            unit.put(evolve(run, status=ExecutionStatus.CANCELLED, completed_at=make.NOW))
            await unit.commit()
        async with store.unit() as unit:
            run = await head(unit)
            try:
                unit.put(evolve(run, error="late"))
            except NotRead:
                unit.put(evolve(await filled(unit, run), error="late"))
            await unit.commit()
        found = await stored(store)
        assert (found.status, found.error) == (ExecutionStatus.CANCELLED, "late")
        assert results_of(found) == results_of(with_results())

    async def test_results_that_change_their_places(self, store: Store) -> None:
        """Results that are put aside keep their outputs, or the put raises `NotRead`."""
        await keep(store, with_results())
        async with store.unit() as unit:
            run = await head(unit)
            try:
                unit.put(put_aside(run))
            except NotRead:
                unit.put(put_aside(await filled(unit, run)))
            await unit.commit()
        assert results_of(await stored(store)) == results_of(put_aside(with_results()))

    async def test_a_head_of_another_execution(self, store: Store) -> None:
        """A result of a head never takes an unread output of another execution."""
        await keep(store, with_results())
        async with store.unit() as unit:
            run = await head(unit)
            other = make.execution("exec_2", step_results=run.step_results)
            try:
                unit.put(other)
            except NotRead:
                whole = await filled(unit, run)
                unit.put(evolve(other, step_results=whole.step_results))
            await unit.commit()
        assert results_of(await stored(store, "exec_2")) == results_of(with_results())

    async def test_results_that_another_execution_takes_along(self, store: Store) -> None:
        """
        Results that a new execution takes from a head, also in other places, keep the old outputs.
        """
        await keep(store, with_results())
        await keep(store, another_one(put_aside(await stored(store))))
        async with store.unit() as unit:
            unit.put(evolve(another_one(put_aside(await head(unit))), id="exec_3"))
            unit.put(evolve(await head(unit), error="in the same unit"))
            await unit.commit()
        for id in ("exec_2", "exec_3"):
            found = await stored(store, id)
            assert results_of(found) == results_of(put_aside(with_results()))
            assert [*found.step_results] == [*put_aside(with_results()).step_results]
        assert results_of(await stored(store)) == results_of(with_results())
        async with store.view() as view:
            run = await filled(view, await head(view, "exec_3"), {"rows", "loop"})
            assert run.step_results["loop"].items == ROWS

    async def test_results_of_an_execution_that_changes_meanwhile(
        self, store: Store, another: Store
    ) -> None:
        """
        If the old execution changes meanwhile, the new execution gets the results as read, or its
        unit is stale.
        """
        await keep(store, with_results())
        async with store.unit() as unit:
            unit.put(another_one(await head(unit)))
            results = {**with_results().step_results, "rows": make.step_result(output=TEXT)}
            await keep(another, evolve(await stored(another), step_results=results))
            try:
                await unit.commit()
            except Stale:
                return
        assert results_of(await stored(store, "exec_2")) == results_of(with_results())

    async def test_results_of_an_execution_that_is_gone_meanwhile(
        self, store: Store, another: Store
    ) -> None:
        """
        If retention deletes the old execution meanwhile, the new execution gets the results as
        read, or its unit is stale.
        """
        await keep(store, with_results(status=ExecutionStatus.FAILED, completed_at=make.NOW))
        async with store.unit() as unit:
            unit.put(another_one(await head(unit)))
            async with another.unit() as purging:
                purging.purge("exec_1")
                await purging.commit()
            try:
                await unit.commit()
            except Stale:
                return
        assert results_of(await stored(store, "exec_2")) == results_of(with_results())

    async def test_a_head_that_has_changed(self, store: Store, another: Store) -> None:
        """An output that was left out is not read from an execution that has changed meanwhile."""
        await keep(store, with_results())
        async with store.view() as view:
            run = await head(view)
            await keep(another, evolve(await stored(another), error="changed"))
            try:
                found = await filled(view, run)
            except Stale:
                return
            assert results_of(found) == results_of(with_results())

    async def test_two_that_store_one_head(self, store: Store, another: Store) -> None:
        """Of two units that store the same head, one commits and the other is stale."""
        await keep(store, with_results())
        async with store.unit() as one, another.unit() as two:
            for number, unit in enumerate((one, two)):
                run = await head(unit)
                results = {**run.step_results, f"by {number}": make.step_result(output=TEXT)}
                unit.put(evolve(run, step_results=results))
            await one.commit()
            with pytest.raises(Stale):
                await two.commit()
        assert "by 1" not in (await stored(another)).step_results


def another_one(run: Execution) -> Execution:
    """A new execution with the results of *run*."""
    found = make.execution("exec_2", step_results=run.step_results)
    return evolve(found, put_aside=run.put_aside)


def put_aside(run: Execution) -> Execution:
    """*run* with the result of a step put aside."""
    results = dict(run.step_results)
    aside = {aside_key(1, "rows"): results.pop("rows")}
    return evolve(run, step_results=results, put_aside=aside)
