"""What the application around the HTTP adapter may set."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from ipaddress import IPv4Network, IPv6Network
from typing import TypeAlias

from attrs import frozen
from starlette.types import Scope

import wfcore
from wfcore.model.access import SignOnTerms, Visitor
from wfcore.ports.identity import IdentityProvider
from wfcore.ports.notices import Notifier

Network: TypeAlias = IPv4Network | IPv6Network
Login: TypeAlias = Callable[[Scope], Awaitable[Visitor | None]]
"""Whom the outer application knows a request (its ASGI scope) to be of; None: nobody."""


class Stage(Enum):
    """What an application still does. Decision 58."""

    SERVING = "serving"
    """Everything."""
    DRAINING = "draining"
    """It is stopping: nothing new is started, and it is not ready; all else goes on."""
    ENDING = "ending"
    """Who waits is answered at once, streams end."""


@frozen
class SignOn:
    """Signing in with an identity provider: the name on its button, and whom it admits."""

    provider: IdentityProvider
    name: str
    terms: SignOnTerms = SignOnTerms()


@frozen
class HttpConfig:
    """
    `public_url`: how clients reach this application, a mount's path included; None: as the
    request says.
    `lifespan`: entered at start, left at the end (worker, store).
    `ready`: raises `StoreUnavailable` or `NotReady` while not ready; None: the store must answer.
    `stage`: what it still does; asked with every start and by whatever waits.
    `gauges`: what the metrics page shows beside the requests.
    `trusted_proxies`: whose `X-Forwarded-For`, `-Proto` and `-Host` are believed.
    `allowed_hosts`: names that it answers to, in lower case, without port; None: to any.
    `console`: whether there are pages for people; without them their paths are 404.
    `mail`: whose channel `mail` sends links that sign in; None: people cannot ask for them.
    `sign_on`: an identity provider that people may sign in with; None: there is none.
    `frame_ancestors`: origins whose pages may frame the pages, `https://example.org`; none by
    default.
    `login`: asked where a request carries none of our keys; None: keys and sessions only.
    """

    public_url: str | None = None
    version: str = wfcore.__version__
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    ready: Callable[[], Awaitable[None]] | None = None
    gauges: Callable[[], Mapping[str, float]] | None = None
    trusted_proxies: Sequence[Network] = ()
    allowed_hosts: Collection[str] | None = None
    login: Login | None = None
    console: bool = False
    mail: Notifier | None = None
    sign_on: SignOn | None = None
    frame_ancestors: Sequence[str] = ()
    stage: Callable[[], Stage] = lambda: Stage.SERVING

    @property
    def ending(self) -> bool:
        """Whether nobody is to be kept waiting any more."""
        return self.stage() is Stage.ENDING
