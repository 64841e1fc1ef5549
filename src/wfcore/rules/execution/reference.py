"""
References: a text by which people find an execution, such as the number of an order. EX-38.

A reference comes from whoever starts the execution, or else from the template of the definition. It
is stored in clear, so that a list can be narrowed to it; secrets are masked before.
"""

from attrs import evolve

from wfcore.effects import Outcome
from wfcore.errors import InvalidInput, TemplateFailed
from wfcore.model.execution import Execution
from wfcore.rules.execution.plan import Render
from wfcore.rules.execution.scope import trigger_of
from wfcore.rules.limits import MAX_REFERENCE
from wfcore.rules.masking import mask_text, secret_values
from wfcore.rules.variables import check_printable, compact
from wfcore.rules.visible import is_blank, visible_name

FIELD = "reference"


def checked_reference(given: str | None) -> str | None:
    """The reference that a caller gives; None if it is blank. Raises `InvalidInput`."""
    if given is None or is_blank(given):
        return None
    if len(given) > MAX_REFERENCE:
        raise InvalidInput(FIELD, f"must have at most {MAX_REFERENCE} characters")
    check_printable(FIELD, given)
    return given


def referred(
    outcome: Outcome[Execution], template: str | None, render: Render
) -> Outcome[Execution]:
    """
    The accepted execution with its reference: the reference of its start, or *template* evaluated
    over its variables and its `trigger`, now.

    Raises `InvalidInput` if the template has no value.
    """
    run = outcome.record
    secrets = secret_values(run)
    text = run.reference
    if text is None and template is not None:
        try:
            value = render(template, {"variables": run.variables, "trigger": trigger_of(run)})
        except TemplateFailed as failed:
            raise InvalidInput(FIELD, mask_text(str(failed), secrets)) from None
        text = value if value is None or isinstance(value, str) else compact(value)
    if text is None:
        return outcome
    shown = visible_name(mask_text(text, secrets))[:MAX_REFERENCE]
    return evolve(outcome, record=evolve(run, reference=None if is_blank(shown) else shown))
