"""Our `evolve` does what attrs' own does, for the records that are written for it."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, evolve
from wfcore.testing.strategies.runs import executions

ANY = st.sampled_from(ExecutionStatus).flatmap(executions)


@given(before=ANY, after=ANY)
def test_like_attrs(before: Execution, after: Execution) -> None:
    """A copy equals the one that attrs makes, and the original stays as it was."""
    changes = {"status": after.status, "step_results": after.step_results, "due_at": after.due_at}
    kept = attrs.evolve(before)
    assert evolve(before, **changes) == attrs.evolve(before, **changes)
    assert before == kept


@given(run=ANY)
def test_unknown_field(run: Execution) -> None:
    """A name that is no field is refused."""
    with pytest.raises(TypeError, match="no field statsu"):
        evolve(run, statsu=run.status)  # type: ignore[call-arg]


@pytest.mark.parametrize("record", [Execution, StepResult, Event])
def test_plain_classes(record: type) -> None:
    """The records it is for have neither slots nor converters, or their copies would differ."""
    assert not hasattr(record, "__slots__")
    assert all(field.converter is None for field in attrs.fields(record))
