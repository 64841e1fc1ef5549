"""What the application around the HTTP adapter may set."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from attrs import frozen
from starlette.types import Scope

import wfcore
from wfcore.model.access import Visitor

Login: TypeAlias = Callable[[Scope], Awaitable[Visitor | None]]
"""Whom the outer application knows a request (its ASGI scope) to be of; None: nobody."""


@frozen
class HttpConfig:
    """
    `public_url`: how clients reach this application, a mount's path included; None: as the
    request says.
    `lifespan`: entered at start, left at the end (dispatcher, store).
    `ready`: raises `StoreUnavailable` while not ready; None: the store must answer.
    `gauges`: what the metrics page shows beside the requests.
    `login`: asked where a request carries none of our keys; None: keys and sessions only.
    """

    public_url: str | None = None
    version: str = wfcore.__version__
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    ready: Callable[[], Awaitable[None]] | None = None
    gauges: Callable[[], Mapping[str, float]] | None = None
    login: Login | None = None
