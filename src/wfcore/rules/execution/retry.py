"""The facts after an attempt that failed or could not begin. DF-9, EX-10, EX-27."""

from collections.abc import Iterable, Iterator

from wfcore.model.execution import Execution, StepStatus
from wfcore.model.workflow import Retry, Step
from wfcore.rules.backoff import Backoff, draw
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.machine import Fact
from wfcore.rules.execution.plan import Failure, StepAt, unfinished
from wfcore.time import DAY, SECOND, EpochMs, later

MAX_RETRY_WAIT = DAY
_ONCE = Retry()
POSTPONEMENT = Backoff(SECOND / 4, 30 * SECOND)


def end_badly(step: Step, key: str, error: str, timed_out: bool) -> Fact:
    """The step's final failure; with `continueOnError` the step counts as ended. EX-10."""
    return facts.StepFailed(key, error, timed_out, steps=1 if step.continue_on_error else 0)


def after_failure(
    run: Execution,
    step: Step,
    key: str,
    error: str,
    now: EpochMs,
    *,
    permanent: bool = False,
    timed_out: bool = False,
) -> Fact:
    """Another attempt if the step's `retry` has any left, otherwise its final failure. DF-9."""
    retry = getattr(step, "retry", _ONCE)
    result = run.step_results[key]
    attempts = result.tries
    if permanent or attempts >= retry.attempts:
        return end_badly(step, key, error, timed_out)
    backoff = Backoff(retry.delay_ms, MAX_RETRY_WAIT, retry.backoff)
    wait = backoff.wait(attempts, draw(f"{run.id}/{key}/{result.attempts}"))
    return facts.StepRetrying(key, error, later(now, min(int(wait), MAX_RETRY_WAIT)))


def postponement(run: Execution, key: str, why: str, now: EpochMs) -> Fact:
    """
    The fact that postpones the attempt in flight, of which nothing has run, by a quarter of a
    second. The delay doubles each time up to 30 s, without a limit on the number of times. EX-27.
    """
    result = run.step_results[key]
    drawn = draw(f"{run.id}/{key}+{result.postponed}/{result.attempts}")
    wait = POSTPONEMENT.wait(result.postponed + 1, drawn)
    return facts.StepPostponed(key, why, later(now, int(wait)))


MOST_TRIES = 16
"""The tries for a shortage that does not end by itself: about five minutes in all."""


def lasting_postponement(run: Execution, step: Step, key: str, why: str, now: EpochMs) -> Fact:
    """
    As `postponement`, for a shortage that does not end by itself: after `MOST_TRIES` the step fails
    for good, because another attempt would find the same shortage. EX-27.
    """
    tries = run.step_results[key].postponed + 1
    if tries >= MOST_TRIES:
        return end_badly(step, key, f"could not be started in {tries} tries: {why}", False)
    told = f"{why} (try {tries} of {MOST_TRIES}; after the last one the step fails)"
    return postponement(run, key, told, now)


def failing_container(run: Execution, at: StepAt, cause: Failure) -> Iterator[Fact]:
    """
    The facts with which a container fails because of a step inside; steps that still run in it are
    stopped. FL-4, FL-7.
    """
    error, steps = cause.error, at.accounts_for(run.step_results)
    failed = {cause.key, *(node.key for node in cause.through)}
    rest = [key for key in unfinished(at, run.step_results) if key not in failed]
    if rest:
        yield facts.StepsCancelled(tuple(rest), f"Step '{cause.key}' failed")
    if cause.key != at.key:
        yield from failing_through(run, cause, cause.through[:-1])
        error = f"Step '{cause.key}' failed: {cause.error}"
    yield facts.StepFailed(at.key, error, cause.timed_out, steps)


def failing_through(run: Execution, cause: Failure, through: Iterable[StepAt]) -> Iterator[Fact]:
    """
    The facts with which a step fails for good, and the containers *through* around it, from the
    inside outwards.
    """
    if run.step_results[cause.key].status is StepStatus.RUNNING:
        yield facts.StepFailed(cause.key, cause.error, cause.timed_out, steps=0)
    error = f"Step '{cause.key}' failed: {cause.error}"
    for node in through:
        yield facts.StepFailed(node.key, error, cause.timed_out, steps=0)
