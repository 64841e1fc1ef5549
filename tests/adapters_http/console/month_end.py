"""A month end close that failed: six branches, two attempts of a step, and what they wrote."""

from attrs import evolve

from tests.support.http_world import code
from wfcore.model.work import Retry
from wfcore.model.workflow import Branch, Language, ParallelStep, Step
from wfcore.ports.runtime import StepEnd
from wfcore.time import DurationMs

from .conftest import Site
from .execution_case import Runs

SOURCE = """\
import json
from close import group, without_partner

bookings = json.load(open("bookings.json"))
matched = sum(1 for one in bookings if one["partner"])
if matched < len(bookings):
    missing = without_partner(bookings)
    raise NoPartnerError(missing)

periods = group(bookings)
"""
CAUSE = "NoPartnerError: 3 bookings have no partner: B-20417, B-20433, B-20458"
TRACE = f"""\
Traceback (most recent call last):
  File "/step/main.py", line 8, in <module>
    raise NoPartnerError(missing)
{CAUSE}
"""
BRANCHES = {
    "payroll_sums": Language.PYTHON,
    "shop_orders": Language.PYTHON,
    "crm_deals": Language.JAVASCRIPT,
    "stripe_payouts": Language.PYTHON,
    "bank_csv": Language.BASH,
    "datev_export": Language.RUBY,
}


def month_end_steps() -> tuple[Step, ...]:
    branches = tuple(
        Branch(name, (evolve(code(name), language=language),))
        for name, language in BRANCHES.items()
    )
    python = evolve(code("reconcile"), language=Language.PYTHON, source=SOURCE)
    return (
        ParallelStep("pull", branches),
        evolve(code("merge"), language=Language.PYTHON),
        evolve(python, retry=Retry(attempts=2, delay_ms=DurationMs(3_000))),
        code("close_books"),
        code("tell_finance"),
    )


def fails(runs: Runs) -> str:
    """An execution that failed at its second attempt of `reconcile`."""
    lines = (
        ("stdout", "Reading 4,218 bookings\n"),
        ("stdout", "\x1b[32m✓\x1b[0m 4,215 matched by reference\n"),
        ("stderr", TRACE),
    )
    failed = StepEnd(None, error=f"exited with status 1: {TRACE}".strip(), lines=lines)
    merged = StepEnd([
        {"account": "4400 Erlöse 19 %", "bookings": 3120, "sum": 48211.5},
        {"account": "1200 Bank", "bookings": 1098, "sum": -917.25},
    ])  # fmt: skip
    id = runs.start()
    runs.play(id, {"merge": merged, "reconcile": failed})
    runs.world.clock.advance(5_000)
    return runs.play(id, {"reconcile": failed})


def month_end(site: Site) -> str:
    """The id of the execution that failed, after one that completed."""
    site.world.clock.advance(-900_000)
    runs = Runs(site, *month_end_steps(), name="Month end close")
    runs.play(runs.start())
    site.world.clock.advance(300_000)
    return fails(runs)
