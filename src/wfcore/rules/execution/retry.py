"""After an attempt that failed, or could not even begin: what follows. DF-9, EX-10, EX-27."""

from hashlib import blake2b

from wfcore.model.execution import Execution
from wfcore.model.workflow import Retry, Step
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.machine import Fact
from wfcore.time import DAY, SECOND, EpochMs, later

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


FIRST_POSTPONEMENT = SECOND // 4
LONGEST_POSTPONEMENT = 30 * SECOND


def postponement(run: Execution, key: str, why: str, now: EpochMs) -> Fact:
    """
    The attempt in flight, of which nothing has run, begins again: after a quarter of a second, and
    each time after twice as long, up to 30 s, as often as it takes. EX-27.
    """
    result = run.step_results[key]
    wait = min(FIRST_POSTPONEMENT << min(result.postponed, 16), LONGEST_POSTPONEMENT)
    drawn = draw(run.id, f"{key}+{result.postponed}", result.attempts)
    return facts.StepPostponed(key, why, later(now, int(wait * (1 + JITTER * drawn))))


MOST_TRIES = 16
"""Of what time alone does not cure: about five minutes."""


def lasting_postponement(run: Execution, step: Step, key: str, why: str, now: EpochMs) -> Fact:
    """
    The same where time alone does not cure what is missing: after `MOST_TRIES` the step has failed
    for good, as another attempt would meet it, too. EX-27.
    """
    tries = run.step_results[key].postponed + 1
    if tries >= MOST_TRIES:
        return end_badly(step, key, f"could not be started in {tries} tries: {why}", False)
    told = f"{why} (try {tries} of {MOST_TRIES}; after the last one the step fails)"
    return postponement(run, key, told, now)


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
