"""What the application around the HTTP adapter may set."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from attrs import frozen

import wfcore


@frozen
class HttpConfig:
    """
    `public_url`: how clients reach this server; None: as the request says.
    `lifespan`: entered at start, left at the end (dispatcher, store).
    `ready`: raises `StoreUnavailable` while not ready; None: the store must answer.
    `gauges`: what the metrics page shows beside the requests.
    """

    public_url: str | None = None
    version: str = wfcore.__version__
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    ready: Callable[[], Awaitable[None]] | None = None
    gauges: Callable[[], Mapping[str, float]] | None = None
