"""
What AI calls consumed, added up exactly. AI-7, contract §2.

Costs are decimal numbers in text form, and their sums are exact: no digit is rounded away. An
unknown cost makes every sum that includes it unknown.
"""

from collections.abc import Iterable
from decimal import Context, Decimal, Inexact
from functools import reduce

from wfcore.model.execution import StepResult
from wfcore.model.usage import Usage

NOTHING = Usage()
EXACT = Context(prec=1_000, traps=[Inexact])
"""More digits than any sum here can have; were one rounded, it would be an error."""


def as_text(cost: Decimal) -> str:
    """A cost in the wire's form: plain digits, no exponent, no trailing zeros."""
    text = f"{cost:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def added(one: Usage, other: Usage) -> Usage:
    """The sum of both."""
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        _both(one.cost_usd, other.cost_usd, 1),
    )


def without(whole: Usage, part: Usage) -> Usage:
    """What is left of *whole* without *part*, which was added to it."""
    return Usage(
        whole.input_tokens - part.input_tokens,
        whole.output_tokens - part.output_tokens,
        _both(whole.cost_usd, part.cost_usd, -1),
    )


def _both(one: str | None, other: str | None, sign: int) -> str | None:
    if one is None or other is None:
        return None
    return as_text(EXACT.fma(Decimal(other), sign, Decimal(one)))


def total(results: Iterable[StepResult]) -> Usage:
    """The sum over all steps; steps that called no model count as nothing."""
    used = (result.usage for result in results if result.usage is not None)
    return reduce(added, used, NOTHING)
