"""Executions in every state, as pages show them: a payout run, played step by step."""

from collections.abc import Collection, Mapping
from typing import Any

from attrs import evolve

from adapters_runtime.cron import CronCalendar
from tests.adapters_http.console.conftest import Site
from tests.support.http_world import code
from wfcore.errors import LeaseLost
from wfcore.model.trigger import Schedule
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    Language,
    LoopStep,
    ParallelStep,
    Step,
    Variable,
    VariableType,
)
from wfcore.ports.runtime import StepEnd
from wfcore.rules.execution.scope import name_of
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease
from wfcore.usecases.upkeep.sweeping import recover

TOOK = {
    "collect": 55,
    "fraud_rules": 47,
    "fraud_model": 56,
    "sanctions_list": 133,
    "bank_limit": 60,
    "payroll_sums": 500,
    "shop_orders": 300,
    "crm_deals": 100,
    "stripe_payouts": 300,
    "bank_csv": 2_900,
    "datev_export": 2_200,
    "merge": 40,
    "reconcile": 2_700,
}


def payout_steps(**review: Any) -> tuple[Step, ...]:
    """The flow of the pictures: a fork of three, one of them a loop, a question, a payment."""
    banks = LoopStep("banks", ["de", "fr", "nl"], "country", (code("bank_limit"),), max_parallel=3)
    fork = (
        Branch("fraud", (code("fraud_rules"), _python("fraud_model"))),
        Branch("sanctions", (code("sanctions_list"),)),
        Branch("limits", (banks,)),
    )
    asked = ApprovalStep("review", "200 payouts wait for release.", **review)
    return (_python("collect"), ParallelStep("score", fork), asked, _python("pay"))


def _python(name: str) -> Step:
    return evolve(code(name), language=Language.PYTHON)


TOKEN = Variable("token", VariableType.STRING, secret=True)

VARIABLES_OF_A_FORM = {
    one.name: one
    for one in (
        Variable("month", has_default=True, default="2026-11"),
        Variable("rows", VariableType.NUMBER, has_default=True, default=200),
        Variable("dry", VariableType.BOOLEAN),
        Variable("filter", VariableType.OBJECT),
        TOKEN,
    )
}
CRON = Schedule("0 9 * * 1", "Europe/Berlin")
ABOUT = "Collects what is to be paid, scores it, and asks before it pays."


def give_calendar(site: Site) -> None:
    """Schedules need one; the fakes of the tests have none."""
    object.__setattr__(site.world.services, "calendar", CronCalendar())


class Runs:
    """One workflow of Ann's, and what becomes of its executions."""

    def __init__(self, site: Site, *steps: Step, name: str = "Payout run", **more: Any) -> None:
        self.site, self.world = site, site.world
        self.workflow = site.do(self.world.workflow(*(steps or payout_steps()), name=name, **more))
        self._leases: dict[str, Lease] = {}

    def start(self, **inputs: Any) -> str:
        return self.site.do(self.world.start(self.workflow, **inputs))

    def url(self, id: str) -> str:
        return f"{self.site.url}/executions/{id}"

    def play(
        self,
        id: str,
        ends: Mapping[str, StepEnd] = {},
        stay: Collection[str] = (),
    ) -> str:
        """Be the worker until nothing but what shall *stay* is running."""
        lease = self._lease(id)
        jobs = list(self.site.do(worker.begin(self.world.services, lease)).jobs)
        while jobs:
            job = jobs.pop(0)
            name = name_of(job.step_name)
            if name in stay or job.step_name in stay:
                continue
            self.world.clock.advance(TOOK.get(name, 40))
            end = ends.get(job.step_name) or ends.get(name) or StepEnd({"checked": name})
            done = worker.complete_step(self.world.services, lease, job.step_name, end)
            try:
                jobs += self.site.do(done).jobs
            except LeaseLost:  # another step has ended the execution
                return id
        return id

    def _lease(self, id: str) -> Lease:
        for lease in self.site.do(worker.claim(self.world.services, "w1", 8)):
            self._leases[lease.execution_id] = lease
        return self._leases[id]

    def lease(self, id: str) -> Lease:
        """Under which steps that were left running go on."""
        return self._leases[id]

    def finish(self, id: str, step: str, end: StepEnd = StepEnd({"checked": True})) -> None:  # noqa: B008
        """End one step that was left running."""
        lease = self._leases[id]
        self.world.clock.advance(TOOK.get(name_of(step), 40))
        self.site.do(worker.complete_step(self.world.services, lease, step, end))


FAILED = {"fraud_model": StepEnd(None, error="ValueError: no score for P-1003\n  line 12")}


def in_every_state(runs: Runs) -> dict[str, str]:
    """An execution for each status, by its name."""
    interrupted = _interrupted(runs)
    found = {
        "interrupted": interrupted,
        "waiting": runs.play(runs.start()),
        "failed": runs.play(runs.start(), FAILED),
        "running": runs.play(
            runs.start(), stay=("sanctions_list", "fraud_model", "banks.2.bank_limit")
        ),
    }
    cancelled = runs.play(runs.start(), stay=("collect",))
    runs.site.do(runs.world.post(f"/api/v1/executions/{cancelled}/cancel"))
    found["cancelled"] = cancelled
    found["completed"] = _completed(runs)
    found["pending"] = runs.start()
    return found


def _interrupted(runs: Runs) -> str:
    id = runs.play(runs.start(), stay=("collect",))
    runs.world.clock.advance(16_000)
    runs.site.do(recover(runs.world.services))
    return id


def _completed(runs: Runs) -> str:
    id = runs.play(runs.start())
    answer = runs.site.do(runs.world.get(f"/api/v1/approvals/execution/{id}")).json()
    runs.world.clock.advance(7_384_000)
    approve = f"/api/v1/approvals/{answer['approvals'][0]['id']}/approve"
    runs.site.do(runs.world.post(approve, {}))
    return runs.play(id)
