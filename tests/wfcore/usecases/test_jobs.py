"""What a worker is handed to run a step, and what is told of what it leaves behind."""

import pytest
from attrs import asdict, evolve

from adapters_store.memory import MemoryStore
from wfcore.effects import (
    CancelChildren,
    DeadlineSet,
    LogGrew,
    Outcome,
    Reload,
    StartStep,
    StopSteps,
    WakeRunner,
)
from wfcore.model.approval import ApprovalStatus
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.workflow import AiStep, CodeStep, Definition, Language
from wfcore.ports.runtime import AiJob, LeftFile, StepJob
from wfcore.rules.masking import NO_SECRETS, mask_text
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.fakes import NotedHints, PathTemplates
from wfcore.time import EpochMs
from wfcore.usecases.approvals import approvals
from wfcore.usecases.artifacts import artifact_of, created
from wfcore.usecases.executions import executions
from wfcore.usecases.executions.step_jobs import NotRendered, job_for
from wfcore.usecases.unit_of_work import notify, stage

from .conftest import World, review

RUN = make.execution("e1", variables={"who": "Ann", "n": 3}, monitored=True, fence=4)
WHO = "{{ variables.who }}"
PLAIN = Definition("flow", (CodeStep("one", Language.BASH, ":"),), ())


def test_a_program_has_its_words_its_environment_and_its_attempt() -> None:
    """Each word of the command is rendered apart; lease, attempt and secrets come along. CS-1."""
    step = CodeStep("one", Language.COMMAND, command=("greet", f"to {WHO}", "{{ variables.n }}"))
    flow = Definition("flow", (step,), ())
    job = job_for(PathTemplates(), RUN, flow, StartStep("one", 2, 5), {"TOKEN": "s3cret-t0ken"})
    assert isinstance(job, StepJob)
    assert (job.execution_id, job.workflow_id, job.step_name) == ("e1", RUN.workflow_id, "one")
    assert (job.attempt, job.postponed, job.fence, job.log) == (2, 5, 4, True)
    assert job.argv == ("greet", "to Ann", "3")
    assert job.environment == {"WF_VAR_who": "Ann", "WF_VAR_n": "3", "TOKEN": "s3cret-t0ken"}
    assert "s3cret" not in mask_text("it is s3cret-t0ken", job.hidden)
    assert job.context["variables"] == RUN.variables
    assert job.step is step


def test_a_question_has_its_texts_and_its_attempt() -> None:
    """Both texts of a question to a model are rendered. AI-1."""
    step = AiStep("ask", "some:model", f"Who is {WHO}?", system=f"You are {WHO}.")
    flow = Definition("flow", (step,), ())
    job = job_for(PathTemplates(), RUN, flow, StartStep("ask", 2, 5), {})
    assert isinstance(job, AiJob)
    assert (job.execution_id, job.workflow_id, job.step_name) == ("e1", RUN.workflow_id, "ask")
    assert (job.attempt, job.postponed, job.fence, job.log) == (2, 5, 4, True)
    assert (job.system, job.prompt) == ("You are Ann.", "Who is Ann?")
    assert job.step is step


@pytest.mark.parametrize(
    ("step", "field"),
    [
        (CodeStep("one", Language.COMMAND, command=("{{ nobody }}",)), "command"),
        (AiStep("one", "some:model", "{{ nobody }}"), "prompt"),
        (AiStep("one", "some:model", "", system="{{ nobody }}"), "system"),
    ],
)
def test_a_template_that_fails_is_named_with_its_field(step: CodeStep | AiStep, field: str) -> None:
    """Whoever wrote it finds the place and the reason."""
    with pytest.raises(NotRendered) as failed:
        job_for(PathTemplates(), RUN, Definition("flow", (step,), ()), StartStep("one", 1), {})
    assert str(failed.value) == f"{field}: template 'nobody': nobody is unknown"


def test_a_file_that_was_left_is_known_as_it_is() -> None:
    """The record of an artifact says all that is known of the file; its event what people need."""
    file = LeftFile("art_1", "a.pdf", "e1/art_1", 7, "application/pdf", "f" * 64, True)
    begun = evolve(RUN, step_results={"one": StepResult(StepStatus.RUNNING, NOW, attempts=2)})
    artifact = artifact_of(begun, "one", file, NOW)
    assert asdict(file).items() <= asdict(artifact).items()
    assert (artifact.execution_id, artifact.step_name, artifact.created_at) == (RUN.id, "one", NOW)
    assert artifact.attempt == 2
    about = {"step": "one", "artifactId": "art_1", "name": "a.pdf", "size": 7}
    assert created("one", file) == (EventKind.ARTIFACT_CREATED, about)


def test_names_of_files_hide_more_than_what_a_step_says() -> None:
    """
    In names also secret variables are masked, one that holds a named secret as a whole; the output
    keeps them for later steps. SC-1.
    """
    step = CodeStep("one", Language.COMMAND, command=("greet",), secrets=("TOKEN",))
    run = evolve(RUN, variables={"key": "my-s3cret-t0ken-1"}, secrets=("key",))
    begun = StartStep("one", 1), {"WF_SECRET_TOKEN": "s3cret-t0ken"}
    job = job_for(PathTemplates(), run, Definition("flow", (step,), ()), *begun)
    assert isinstance(job, StepJob)
    names = "r-my-s3cret-t0ken-1.txt", "r-s3cret-t0ken.txt"
    assert [mask_text(one, job.hidden_in_names) for one in names] == ["r-***.txt"] * 2
    assert mask_text(names[0], job.hidden) == "r-my-***-1.txt"
    plain = job_for(PathTemplates(), RUN, PLAIN, StartStep("one", 1), {})
    assert isinstance(plain, StepJob)
    assert plain.hidden_in_names == NO_SECRETS


def test_every_hint_goes_to_whom_it_is_for() -> None:
    """Each names the execution that it means; steps to start are the caller's."""
    hints, start = NotedHints(), StartStep("one", 1)
    effects = (LogGrew("a"), StopSteps("b"), Reload("c"), WakeRunner(), start, DeadlineSet())
    assert notify(hints, "e1", effects) == (start,)
    assert hints.told == [
        ("events", "e1"),
        ("events", "a"),
        ("stop", "b"),
        ("reload", "c"),
        ("runner", None),
        ("timer", None),
    ]


async def test_of_children_that_nobody_waits_for_each_that_goes_on_ends() -> None:
    """Those that are gone or over are left alone; who follows one of the others is told. FL-6."""
    store, over = MemoryStore(), ExecutionStatus.COMPLETED
    done = {"status": over, "completed_at": NOW, "due_at": None}
    await keep(store, RUN, *(make.execution(id) for id in ("c1", "c2")))
    await keep(store, make.execution("done", **done))
    async with store.unit() as unit:
        parent = await unit.get(Execution, "e1")
        assert parent is not None
        children = CancelChildren(("gone", "c1", "done", "c2"))
        outcome = await stage(unit, Outcome(parent, effects=(children,)), NOW)
        await unit.commit()
    assert [one.execution_id for one in outcome.effects if isinstance(one, LogGrew)] == ["c1", "c2"]
    async with store.view() as view:
        found = [await view.get(Execution, id) for id in ("c1", "done", "c2")]
    statuses = [one.status for one in found if isinstance(one, Execution)]
    assert statuses == [ExecutionStatus.CANCELLED, over, ExecutionStatus.CANCELLED]


async def test_an_approval_that_nobody_waits_for_says_since_when(world: World) -> None:
    """What a cancelled execution asked is withdrawn with the time of the cancellation. AP-5."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, review()))
    await world.take()
    world.clock.advance(5)
    await executions.cancel_execution(world.services, ann, run_id)
    (approval,) = await approvals.approvals_of(world.services, ann, run_id)
    assert approval.status is ApprovalStatus.CANCELLED
    assert approval.history[-1].at == EpochMs(world.clock.now())
