"""
The usage of AI calls, and whether a budget allows the next call. AI-7, BU-1 to BU-3.

Costs are decimal numbers as text, and their sums are exact: no digit is ever rounded away. An
unknown cost makes every sum with it unknown.

The budget is checked before each call against the usage on record at that moment. A call in flight
is not on record yet, so calls in parallel branches, and the last call itself, may exceed the
limits; no call begins beyond them.

The cost of an ended execution is also a whole number of `PICO` USD, which a store can index and
sum.
"""

from collections.abc import Iterable
from decimal import Context, Decimal, Inexact
from functools import reduce

from attrs import evolve, frozen

from wfcore.model.execution import Execution, StepResult, Usage
from wfcore.model.workflow import Budget
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.numbers import cost_text

NOTHING = Usage()
EXACT = Context(prec=1_000, traps=[Inexact])
"""More digits than any sum here can have; rounding would raise an error."""
PICO = 12
"""Digits behind the point of `ended_cost`: one USD is `10**PICO`."""
UNPRICED, _MOST = -1, (1 << 63) - 1


def added(one: Usage, other: Usage) -> Usage:
    """The sum of both usages."""
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        _both(one.cost_usd, other.cost_usd, 1),
    )


def without(whole: Usage, part: Usage) -> Usage:
    """The rest of *whole* without *part*, which was added to it."""
    return Usage(
        whole.input_tokens - part.input_tokens,
        whole.output_tokens - part.output_tokens,
        _both(whole.cost_usd, part.cost_usd, -1),
    )


def _both(one: str | None, other: str | None, sign: int) -> str | None:
    if one is None or other is None:
        return None
    return cost_text(EXACT.fma(Decimal(other), sign, Decimal(one)))


def total(results: Iterable[StepResult]) -> Usage:
    """The sum over all steps; steps that called no model count as zero."""
    used = (result.usage for result in results if result.usage is not None)
    return reduce(added, used, NOTHING)


def ended_cost(run: Execution) -> int | None:
    """
    The cost of an ended execution and its child executions, in whole `10**-PICO` USD. None if
    nothing was spent, or the execution has not ended; `UNPRICED` if the price of a part is unknown.
    Results that a redrive kept do not count. AI-10.
    """
    if run.status not in EXECUTION.final:
        return None
    own = total(one for one in run.every_result if one.started_at >= run.accepted_at)
    if own.cost_usd is None:
        return UNPRICED
    return min(round(Decimal(own.cost_usd).scaleb(PICO, EXACT)), _MOST) or None


def in_usd(cost: int) -> str:
    """A sum of `ended_cost` as decimal text."""
    return cost_text(Decimal(cost).scaleb(-PICO, EXACT))


@frozen
class Allowance:
    """A budget, and the usage since the start or since the budget was last extended."""

    budget: Budget
    spent: Usage = NOTHING

    def after(self, usage: Usage) -> "Allowance":
        """The allowance with *usage* spent as well."""
        return evolve(self, spent=added(self.spent, usage))


@frozen
class Overrun:
    """
    The reason why the next call is refused. `extendable`: whether an approval could extend the
    budget.
    """

    why: str
    extendable: bool = True


def allowance(budget: Budget | None, run: Execution) -> Allowance | None:
    """The allowance of *run*; None if it has no budget."""
    if budget is None:
        return None
    spent = total(run.every_result)
    return Allowance(budget, without(spent, run.granted) if run.granted else spent)


def overrun(held: Allowance | None) -> Overrun | None:
    """
    The reason why no further call is allowed; None if a further call is allowed. BU-1.

    An unknown cost cannot be compared with a limit, and no approval makes it known. BU-3.
    """
    if held is None:
        return None
    budget, spent = held.budget, held.spent
    if budget.max_cost_usd is not None and spent.cost_usd is None:
        return Overrun("the budget has maxCostUsd, and what was spent has no known price", False)
    if not (_tokens_gone(budget, spent) or _money_gone(budget, spent)):
        return None
    return Overrun(f"the budget is spent: {described(spent)}; {_limits(budget)}")


def _tokens_gone(budget: Budget, spent: Usage) -> bool:
    most = budget.max_tokens
    return most is not None and spent.input_tokens + spent.output_tokens >= most


def _money_gone(budget: Budget, spent: Usage) -> bool:
    if budget.max_cost_usd is None or spent.cost_usd is None:
        return False
    return Decimal(spent.cost_usd) >= Decimal(budget.max_cost_usd)


def described(usage: Usage) -> str:
    """The usage in words."""
    cost = "at an unknown price" if usage.cost_usd is None else f"for {usage.cost_usd} USD"
    return f"{usage.input_tokens + usage.output_tokens} tokens {cost}"


def _limits(budget: Budget) -> str:
    tokens = [] if budget.max_tokens is None else [f"maxTokens is {budget.max_tokens}"]
    money = [] if budget.max_cost_usd is None else [f"maxCostUsd is {budget.max_cost_usd}"]
    return ", ".join(tokens + money)
