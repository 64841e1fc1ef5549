"""A mail has another `Message-ID` each time it is handed over; no answer is recorded. ML-1."""

import asyncio
from itertools import count
from os import getpid
from typing import Any

from adapters_runtime.engine import outbox
from adapters_runtime.notices import mail

BETWEEN_S = 600


def plant() -> None:
    with_headers, settle, numbers = mail.MailNotifier._with_headers, outbox.settle_notice, count()

    def headed(self: Any, id: str, *more: Any) -> Any:
        return with_headers(self, f"{id}.{getpid()}.{next(numbers)}", *more)

    async def settles(*args: Any) -> Any:
        await asyncio.sleep(BETWEEN_S)
        return await settle(*args)

    mail.MailNotifier._with_headers = headed  # type: ignore[method-assign]
    outbox.settle_notice = settles
