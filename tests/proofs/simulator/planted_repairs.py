"""Bugs to plant in redrives, in the files that steps read, and in ids of mails. See `planted`."""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from attrs import evolve

from wfcore.model.execution import StepResult, StepStatus
from wfcore.model.notice import Notice, NoticeKind
from wfcore.rules.notices import delivery
from wfcore.usecases.executions import given_files, redriving, worker

FAILED = StepStatus.FAILED


def a_kept_step_runs(patch: pytest.MonkeyPatch) -> None:
    """The plan says that a step is kept, and its result is left out."""
    plan_redrive = redriving.plan_redrive

    def plan(*args: Any, **more: Any) -> Any:
        made = plan_redrive(*args, **more)
        return evolve(made, results=dict(list(made.results.items())[:-1]))

    patch.setattr(redriving, "plan_redrive", plan)


def the_unfinished_is_kept(patch: pytest.MonkeyPatch) -> None:
    """A step that failed counts as skipped."""
    plan_redrive = redriving.plan_redrive

    def plan(run: Any, *args: Any, **more: Any) -> Any:
        made = plan_redrive(run, *args, **more)
        failed = {k: one for k, one in run.step_results.items() if one.status is FAILED}
        skipped = {key: evolve(one, status=StepStatus.SKIPPED) for key, one in failed.items()}
        return evolve(made, results={**skipped, **made.results})

    patch.setattr(redriving, "plan_redrive", plan)


def redriven_under_any_id(patch: pytest.MonkeyPatch) -> None:
    """Each redrive has an id by chance: two at the same moment carry out one plan."""
    numbers = count()

    async def next_id(unit: Any, old: Any, redriven_as: str | None) -> str:
        return f"exec_{next(numbers):03}_{old.id}"

    patch.setattr(redriving, "_next_id", next_id)
    patch.setattr(redriving.PreparedRedrive, "digest", property(lambda one: one.plan.start or ""))


def files_are_left_behind(patch: pytest.MonkeyPatch) -> None:
    """A redrive keeps results without their files."""

    async def copied(*_: Any) -> Sequence[Any]:
        return ()

    patch.setattr(redriving, "_copied_artifacts", copied)


def files_of_failed_attempts(patch: pytest.MonkeyPatch) -> None:
    """A step reads what all attempts of an earlier step left."""

    def every(results: dict[str, StepResult], artifacts: Sequence[Any]) -> Sequence[Any]:
        return artifacts

    async def files_for(*args: Any) -> Any:
        return await given_files.given_files(*args[:4])

    patch.setattr(given_files, "latest", every)
    patch.setattr(worker, "files_for", files_for)


def a_failure_makes_another_message(patch: pytest.MonkeyPatch) -> None:
    """A mail that was not taken is written anew, under another id."""
    failed = delivery.failed

    def again(notice: Notice, why: str, *, for_good: bool = False) -> Notice:
        after = failed(notice, why, for_good=for_good)
        if notice.kind is not NoticeKind.STEP_MAIL or for_good:
            return after
        return evolve(after, id=f"{notice.id}x", version=0)

    patch.setattr(delivery, "failed", again)
