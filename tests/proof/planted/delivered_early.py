"""
A callback is on record as delivered before it is sent. CB-3.

The fault: the server stops between the two.
"""

from typing import Any

from proof import faults
from wfcore.ports.callbacks import Answer
from wfcore.usecases import calling_back
from wfcore.usecases.calling_back import Call
from wfcore.usecases.services import Services


def plant() -> None:
    faults.expect()
    take = calling_back._take

    async def delivered(services: Services, *args: Any) -> Call | None:
        call = await take(services, *args)
        if call is not None:
            await calling_back.settle_call(services, call, Answer(200))
            faults.freeze("")
        return call

    calling_back._take = delivered
