"""Which executions the service takes up again when a worker dies, and which it never does."""

from typing import Any

import pytest
from attrs import evolve

from wfcore.model.execution import (
    Execution,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
    StepStatus,
    TriggerSource,
)
from wfcore.model.workflow import AiStep, CodeStep, Definition, LoopStep, OnInterrupt
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.children import child_end, given_up
from wfcore.rules.execution.interruption import loss, may_resume, obstacle
from wfcore.testing import builders
from wfcore.testing.builders import NOW, step_result
from wfcore.time import later

FOREIGN = (TriggerSource.OPEN_API, TriggerSource.WEBHOOK)
OURS = (TriggerSource.MANUAL, TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION)
DEFINITION = builders.definition()
RESUME, FAIL = OnInterrupt
FLIES = {"work": step_result(StepStatus.RUNNING)}
LOST = {"work": step_result(StepStatus.INTERRUPTED)}


def interrupted(source: TriggerSource, **fields: object) -> Execution:
    fields = {"status": ExecutionStatus.INTERRUPTED, "step_results": LOST, **fields}
    return builders.execution(trigger_source=source, **fields)


@pytest.mark.parametrize("source", TriggerSource)
def test_only_what_the_service_started_is_resumed(source: TriggerSource) -> None:
    """EX-12, EX-14: by its trigger, and not more often than three times."""
    for resumes in range(5):
        run = interrupted(source, resumes=resumes)
        assert may_resume(run, DEFINITION) is (source in OURS and resumes < 3)
        assert not may_resume(evolve(run, status=ExecutionStatus.RUNNING), DEFINITION)


@pytest.mark.parametrize("root", TriggerSource)
def test_a_child_asks_its_root(root: TriggerSource) -> None:
    """EX-24: what started the first of the family counts, and that a parent did counts nothing."""
    run = interrupted(TriggerSource.WORKFLOW, parent_id="exec_0", root_source=root)
    assert may_resume(run, DEFINITION) is (root in OURS)


def test_a_child_of_an_older_release_is_not_resumed() -> None:
    """EX-24: nobody wrote down what started its root, so the safe answer is no, with its reason."""
    run = interrupted(TriggerSource.WORKFLOW, parent_id="exec_0")
    assert obstacle(run, DEFINITION) == (
        "what started the first of the executions above it is not on record"
    )


WORDS: tuple[tuple[OnInterrupt, OnInterrupt | None, bool], ...] = (
    (RESUME, None, True),
    (RESUME, RESUME, True),
    (RESUME, FAIL, False),
    (FAIL, None, False),
    (FAIL, RESUME, True),
    (FAIL, FAIL, False),
)


@pytest.mark.parametrize(("definition", "step", "may"), WORDS)
@pytest.mark.parametrize("key", ["work", "each.0.work"])
def test_the_steps_word_wins(
    definition: OnInterrupt, step: OnInterrupt | None, may: bool, key: str
) -> None:
    """EX-25: `onInterrupt` on the step, else on the definition; in rounds of loops as well."""
    for work in (
        builders.code_step(on_interrupt=step),
        AiStep("work", "openai:m", "Go", on_interrupt=step),
    ):
        above = work if key == "work" else LoopStep("each", [1], "item", (work,))
        written = builders.definition(above, on_interrupt=definition)
        lost = {"done": step_result(), key: LOST["work"]}
        assert may_resume(interrupted(TriggerSource.MANUAL, step_results=lost), written) is may
        assert not may_resume(interrupted(TriggerSource.WEBHOOK, step_results=lost), written)


def test_one_step_that_refuses_is_enough() -> None:
    """EX-25: of two steps in flight one says fail; what had ended before is not asked."""
    steps = [builders.code_step(name) for name in ("done", "free", "paid")]
    pay = evolve(steps[2], on_interrupt=FAIL)
    done = evolve(steps[0], on_interrupt=FAIL)
    written = builders.definition(done, steps[1], pay)
    results = {"done": step_result(), "free": LOST["work"], "paid": LOST["work"]}
    run = interrupted(TriggerSource.SCHEDULE, step_results=results)
    assert "step 'paid' says `onInterrupt: fail`" in (obstacle(run, written) or "")
    less = evolve(run, step_results={key: results[key] for key in ("done", "free")})
    assert obstacle(less, written) is None


def test_the_loss_of_a_worker_is_judged_by_what_ran() -> None:
    """EX-11, EX-15: nothing in flight, nothing lost; else looked at at once or after the grace."""

    def lost(definition: Definition = DEFINITION, **fields: object) -> facts.Fact:
        return loss(builders.execution(**{"step_results": FLIES, **fields}), definition, NOW, 300)

    never = builders.definition(CodeStep("work", builders.code_step().language, on_interrupt=FAIL))
    at_once, in_time = facts.WorkerLost(NOW), facts.WorkerLost(later(NOW, 300))
    assert lost(step_results={"work": step_result()}) == facts.LeaseReturned()
    assert lost(trigger_source=TriggerSource.MANUAL) == at_once
    assert lost(trigger_source=TriggerSource.OPEN_API) == in_time
    assert lost(trigger_source=TriggerSource.MANUAL, definition=never) == in_time
    assert lost(trigger_source=TriggerSource.MANUAL, resumes=3) == in_time


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"trigger_source": TriggerSource.MANUAL}, None),
        (
            {"trigger_source": TriggerSource.OPEN_API},
            f"it was started by {TriggerSource.OPEN_API}, so its caller must start it again",
        ),
        (
            {
                "trigger_source": TriggerSource.WORKFLOW,
                "root_source": TriggerSource.WEBHOOK,
                "parent_id": "exec_0",
            },
            f"the root of its family was started by {TriggerSource.WEBHOOK}, so its caller must "
            "start it again",
        ),
        (
            {"trigger_source": TriggerSource.WORKFLOW, "parent_id": "exec_0"},
            "what started the first of the executions above it is not on record",
        ),
        ({"trigger_source": TriggerSource.MANUAL, "resumes": 3}, "it was resumed 3 times"),
    ],
)
def test_why_nothing_is_resumed_is_told_in_words(fields: dict[str, Any], said: str | None) -> None:
    """EX-12, EX-14, EX-24: whoever asks reads what keeps the service from going on by itself."""
    assert obstacle(builders.execution(**fields), None) == said


NOT_ENDED = "execution exec_1 was interrupted and has not ended in time"


@pytest.mark.parametrize(
    ("reason", "of_step", "interrupted"),
    [
        (StatusReason(ReasonCode.INTERRUPTED), None, True),
        (StatusReason(ReasonCode.STEP_FAILED, "work"), ReasonCode.INTERRUPTED, True),
        (StatusReason(ReasonCode.STEP_FAILED, "work"), ReasonCode.TIMEOUT, False),
        (StatusReason(ReasonCode.STEP_FAILED, "work"), None, False),
        (StatusReason(ReasonCode.TIMEOUT), ReasonCode.INTERRUPTED, False),
        (None, None, False),
    ],
)
def test_that_work_was_interrupted_is_passed_up(
    reason: StatusReason | None, of_step: ReasonCode | None, interrupted: bool
) -> None:
    """EX-26: no ancestor tries again what a worker's death broke off, however deep it was."""
    child = builders.execution(
        status=ExecutionStatus.FAILED,
        status_reason=reason,
        error="broken",
        parent_step="call",
        step_results={"work": step_result(StepStatus.FAILED, reason=of_step)},
    )
    said = "execution exec_1 failed: broken"
    assert child_end(child) == facts.ChildFailed("call", "exec_1", said, None, interrupted)
    assert given_up(child) == facts.ChildFailed("call", "exec_1", NOT_ENDED, None, True)
