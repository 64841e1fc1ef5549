"""Sending callbacks over HTTP, to public addresses only. CB-4; how: `pinned_http`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from adapters_runtime.pinned_http import Choice, ExchangeFailed, HostShort, NotAllowed, PinnedHttp
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.rules.address import is_public

TIMEOUT_S = 15.0
_HEADERS = {"content-type": "application/json", "user-agent": "wfcore-callback"}


class HttpCallbackClient:
    """The `CallbackClient` of a server. *allow_private*: private and loopback addresses, too."""

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
        except NotAllowed:
            return CallbackAnswer(error="its address is private or a loopback one")
        except ExchangeFailed as failure:
            return CallbackAnswer(error=f"could not be reached: {type(failure).__name__}")
        return CallbackAnswer(reply.status)


def _anywhere(addresses: Sequence[str]) -> Sequence[str]:
    return addresses


def _public_alone(addresses: Sequence[str]) -> Sequence[str]:
    """One private address among them is enough to distrust the name."""
    return addresses if all(map(is_public, addresses)) else ()
