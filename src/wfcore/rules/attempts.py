"""After a failed attempt: another one, or the step's final failure. DF-9, EX-10."""

from hashlib import blake2b

from wfcore.instants import DAY, EpochMs, later
from wfcore.model.execution import Execution
from wfcore.model.workflow import Retry, Step
from wfcore.rules import execution_machine as facts
from wfcore.rules.execution_machine import Fact

MAX_RETRY_WAIT = DAY
JITTER = 0.25
"""How much longer than stated a wait may be: what failed together does not come back together."""


def end_badly(step: Step, key: str, error: str, timed_out: bool) -> Fact:
    """The step's final failure; with `continueOnError` it is done with. EX-10."""
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
    """Another attempt while the step's `retry` has any left, else its final failure. DF-9."""
    retry = getattr(step, "retry", _ONCE)
    attempts = run.step_results[key].attempts
    if permanent or attempts >= retry.attempts:
        return end_badly(step, key, error, timed_out)
    wait = _wait_ms(retry, attempts, draw(run.id, key, attempts))
    return facts.StepRetrying(key, error, later(now, wait))


_ONCE = Retry()


def draw(execution_id: str, key: str, attempt: int) -> float:
    """A number from 0 to 1 that is the same whoever asks, and another one for each attempt."""
    digest = blake2b(f"{execution_id}/{key}/{attempt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _wait_ms(retry: Retry, attempts: int, drawn: float) -> int:
    """`delay * backoff^(n-1)` after the n-th failure and up to a quarter more, at most a day."""
    try:
        wait = retry.delay_ms * retry.backoff ** (attempts - 1)
    except OverflowError:
        return MAX_RETRY_WAIT if retry.delay_ms else 0
    return int(min(wait * (1 + JITTER * drawn), MAX_RETRY_WAIT))
