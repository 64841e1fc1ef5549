"""
A callback is on record as delivered before it is sent. CB-3.

The fault: the server stops between the two.
"""

from typing import Any

from tests.proofs.kills import faults
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.usecases.executions import callbacks
from wfcore.usecases.executions.callbacks import CallbackAttempt
from wfcore.usecases.services import Services


def plant() -> None:
    faults.expect()
    take = callbacks._take

    async def delivered(services: Services, *args: Any) -> CallbackAttempt | None:
        call = await take(services, *args)
        if call is not None:
            await callbacks.settle_call(services, call, CallbackAnswer(200))
            faults.freeze("")
        return call

    callbacks._take = delivered
