"""The data of a world at its start: people, workflows, webhooks, a nearly exhausted quota."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from attrs import evolve, frozen

from wfcore.memory import Disk, MemoryCounters
from wfcore.memory.tables import ACCOUNTS, SHARES, TIMERS, TRIGGERS, WEBHOOKS
from wfcore.model.access import Permission, Principal, Tier
from wfcore.model.json import JsonObject
from wfcore.model.trigger import TriggerKind
from wfcore.model.workflow import Definition
from wfcore.rules.auth.rate_limit import Count
from wfcore.rules.definition.check import check_definition
from wfcore.rules.limits import REQUESTS
from wfcore.testing import builders as make
from wfcore.testing.simulator.ports import BIRTH, SimCalendar
from wfcore.testing.simulator.scheduler import at_once
from wfcore.time import MINUTE, EpochMs
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.workflows import apply_workflow

PLAN = Tier.PRO
"""The plan of the people of simulated worlds."""
PEOPLE = (
    Principal(make.account("acc_ann", plan=PLAN)),
    Principal(make.account("acc_bob", plan=PLAN)),
    Principal(make.account("acc_cyd", plan=PLAN)),
)
"""
The people. The first person owns all workflows, the second may EDIT the workflows, the third is
only an approver.
"""
DAN = "dan@example.org"
"""The email of a person without an account, who decides by personal links."""
HOOKS_OWNER = make.account("acc_hooks", plan=Tier.ENTERPRISE)
"""
The owner of the triggered webhooks, which therefore do not count against the limits of others.
"""
BUSY = "key:busy"
"""The subject of a nearly exhausted quota."""
SPARE = 5
"""The number of requests per minute that the quota of `BUSY` has left."""


@frozen
class SeedData:
    """The ids of the workflows and of their webhooks, by the number of the flow."""

    workflow_ids: Sequence[str]
    webhook_ids: Sequence[str]


def seed_world(disk: Disk, services: Services, flows: Sequence[JsonObject]) -> SeedData:
    """Store the people, workflows, shares and webhooks of a world; return the ids."""
    owner, editor, asked = (one.account for one in PEOPLE)
    for account in (owner, editor, asked, HOOKS_OWNER):
        disk.tables[ACCOUNTS.name][account.id] = evolve(account, version=1)
    workflow_ids: list[str] = []
    webhook_ids: list[str] = []
    for number, flow in enumerate(flows):
        applied: Any = apply_workflow(services, owner.id, definition_of(flow))
        workflow_id = at_once(applied).id
        workflow_ids.append(workflow_id)
        share = make.share(workflow_id, editor.id, permission=Permission.EDIT, version=1)
        disk.tables[SHARES.name][workflow_id, editor.id] = share
        hook = make.webhook(
            f"wh_{number}", workflow_id=workflow_id, owner_id=HOOKS_OWNER.id, version=1
        )
        disk.tables[WEBHOOKS.name][hook.id] = hook
        webhook_ids.append(hook.id)
    return SeedData(workflow_ids, webhook_ids)


def use_up_quota(counters: MemoryCounters) -> dict[tuple[str, int], int]:
    """Use most of the quota of `BUSY` for the first minutes; return the counts."""
    used = REQUESTS[PLAN][0] - SPARE
    first = BIRTH - BIRTH % MINUTE
    minutes = range(first, first + 3 * MINUTE, MINUTE)
    for start in minutes:
        counters.ledger.counts[BUSY, "minute", start] = Count(used, EpochMs(start + MINUTE))
    return dict.fromkeys(((BUSY, start) for start in minutes), used)


def stop_schedules(disk: Disk) -> None:
    """Delete all schedules and their timers, which would go on for ever."""
    triggers, timers = disk.tables[TRIGGERS.name], disk.tables[TIMERS.name]
    ids = [one.id for one in triggers.values() if one.kind is TriggerKind.SCHEDULE]
    left = [one.id for one in timers.values() if one.trigger_id in ids]
    disk.settle({TRIGGERS.name: dict.fromkeys(ids), TIMERS.name: dict.fromkeys(left)})


def definition_of(flow: JsonObject) -> Definition:
    """The definition that *flow* describes. Raises `InvalidDefinition`."""
    return _checked(json.dumps(flow))


@lru_cache(maxsize=4_096)
def _checked(text: str) -> Definition:
    calendar = SimCalendar()
    return check_definition(json.loads(text), lambda template, known: (), calendar.problems)
