"""
Concurrency groups: how many executions of a workflow may run at once. CC-1.

The executions of one group share the workflow's limit. Without a concurrency key, all executions of
a workflow are one group; with a key, each group consists of the executions with the same value of
the key.
"""

from hashlib import sha256

from attrs import evolve

from wfcore.effects import Outcome
from wfcore.errors import InvalidInput, LimitReached, TemplateFailed
from wfcore.model.execution import Execution
from wfcore.model.workflow import Concurrency
from wfcore.rules.execution.plan import Render
from wfcore.rules.execution.scope import trigger_of
from wfcore.rules.masking import mask_text, secret_values
from wfcore.rules.variables import compact

FIELD = "concurrency.key"


def in_group(
    outcome: Outcome[Execution], concurrency: Concurrency, render: Render
) -> Outcome[Execution]:
    """
    The accepted execution with its concurrency group; the key is evaluated over its variables
    and its `trigger`, now.

    Only a digest of the key's value is stored. Raises `InvalidInput` if the key has no value. CC-3.
    """
    run = outcome.record
    return evolve(
        outcome, record=evolve(run, concurrency_group=_group(run, concurrency.key, render))
    )


def _group(run: Execution, key: str | None, render: Render) -> str:
    if key is None:
        return run.workflow_id
    try:
        value = render(key, {"variables": run.variables, "trigger": trigger_of(run)})
    except TemplateFailed as failed:
        raise InvalidInput(FIELD, mask_text(str(failed), secret_values(run))) from None
    text = value if isinstance(value, str) else compact(value)
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{run.workflow_id}:{digest[:32]}"


def require_room(run: Execution, concurrency: Concurrency, unfinished: int) -> None:
    """Raises `LimitReached` if the group is full and `onLimit` is `skip`. CC-4."""
    if unfinished >= concurrency.limit:
        raise LimitReached(_full(concurrency), run.workflow_id, concurrency.limit)


def _full(concurrency: Concurrency) -> str:
    many = "1 execution" if concurrency.limit == 1 else f"{concurrency.limit} executions"
    which = " with this key" if concurrency.key is not None else ""
    return f"The workflow allows {many}{which} at once, and as many have not ended"
