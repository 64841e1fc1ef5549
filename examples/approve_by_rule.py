"""
A background service beside the server that decides approvals by a rule, and leaves the rest.

    wfcore account create robot@example.org
    python approve_by_rule.py wfcore-data robot@example.org

It works on the server's own data folder, as the command line does, and has no other rights
than its account: it decides what names it among its `approvers`. To run two of them is
harmless, since of several decisions one wins.
"""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from wfcore import (
    Approval,
    ApprovalStatus,
    Approve,
    Decide,
    DecisionSource,
    PageRequest,
    Principal,
    Reject,
    Services,
    decide_approval,
    find_account,
    list_approvals,
    read_approval,
)
from wfcore.errors import Conflict, Forbidden, InvalidInput, StoreUnavailable
from wfcore.ports import ApprovalFilter
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

LOOK_EVERY_S = 0.5
MOST = 100

Rule: TypeAlias = Callable[[Approval], Approve | Reject | None]
"""What to decide; None: this one is for people."""


def small_amounts(approval: Approval) -> Approve | Reject | None:
    """Release rows up to 100 where there are only such; the others are for people."""
    amounts = [row.get("amount") for group in approval.groups for row in group.items]
    small = all(isinstance(one, int | float) and one <= MOST for one in amounts)
    return Approve() if small else None


async def decide_all(services: Services, who: Principal, rule: Rule) -> int:
    """One look at everything that is open; how many were decided."""
    decided, page = 0, PageRequest(1, 200)
    waiting = ApprovalFilter(statuses=(ApprovalStatus.PENDING,))
    for listed in (await list_approvals(services, who, page, waiting)).rows:
        approval = await read_approval(services, who, listed.id)
        decision = rule(approval)
        if decision is None:
            continue
        asked = Decide(approval.id, decision, DecisionSource.API, f"by rule: {rule.__doc__}")
        with suppress(Conflict, Forbidden, InvalidInput):  # somebody was faster, or it is not ours
            await decide_approval(services, who, asked)
            decided += 1
    return decided


async def serve(folder: str, email: str, rule: Rule) -> None:
    """Look again and again until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with open_system(settings_from(data=folder)) as system:
        who = Principal(await find_account(system.services, email))
        print("ready", flush=True)
        while not stop.is_set():
            with suppress(StoreUnavailable):
                await decide_all(system.services, who, rule)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await stop.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], small_amounts))
