"""The client that sends callbacks, and notices to chats, once to one checked address. CB-4."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from adapters_runtime.pinned_http import (
    Choice,
    ExchangeFailed,
    HostShort,
    NotAllowed,
    NotResolved,
    PinnedHttp,
)
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.rules.address import is_public

TIMEOUT_S = 15.0
NO_ADDRESS = "its address is private or a loopback one, or its name is unknown"
"""One text for both: the difference would reveal names of the network that this server is in."""
_HEADERS = {"content-type": "application/json", "user-agent": "wfcore-callback"}


class HttpCallbackClient:
    """
    The `CallbackClient` of a server. *allow_private*: also send to private and loopback addresses.
    """

    def __init__(
        self,
        allow_private: bool = False,
        timeout_s: float = TIMEOUT_S,
        http: Callable[[Choice], PinnedHttp] = PinnedHttp,
    ) -> None:
        self._timeout_s = timeout_s
        self._http = http(_anywhere if allow_private else _public_alone)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        """Send *body* once; see `CallbackClient`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._http.exchange("POST", url, {**headers, **_HEADERS}, body, 0)
        except TimeoutError:
            return CallbackAnswer(error=f"no answer within {self._timeout_s:g} s")
        except HostShort as short:
            return CallbackAnswer(postponed=str(short))
        except (NotAllowed, NotResolved):
            return CallbackAnswer(error=NO_ADDRESS)
        except ExchangeFailed as failure:
            return CallbackAnswer(error=f"could not be reached: {type(failure).__name__}")
        return CallbackAnswer(
            reply.status, retry_after_s=_seconds(reply.headers.get("retry-after"))
        )


def _seconds(text: str | None) -> int | None:
    """The seconds of a `Retry-After`, or None if it holds no number of seconds."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else None


def _anywhere(addresses: Sequence[str]) -> Sequence[str]:
    return addresses


def _public_alone(addresses: Sequence[str]) -> Sequence[str]:
    """
    *addresses* if all are public, otherwise no address: one private address discredits the name.
    """
    return addresses if all(map(is_public, addresses)) else ()
