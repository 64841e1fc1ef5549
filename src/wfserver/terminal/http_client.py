"""A small HTTP client for commands: JSON requests with a key, by the standard library."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

from attrs import define, field, frozen

from wfserver.terminal.failures import Failed

_TIMEOUT_S = 30.0


@frozen
class Exchange:
    """One request and its answer."""

    method: str
    path: str
    body: Any
    status: int
    answer: Any


@define
class Api:
    """
    The API at *url*; *heard* is called with every exchange. The key is never sent to another host.
    """

    url: str
    key: str = field(repr=False)
    heard: Callable[[Exchange], None] = lambda exchange: None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the answer. Raises `Failed` if nobody answers or the answer is an error."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310
        status, content = self._sent(request)
        answer = json.loads(content)
        self.heard(Exchange(method, path, body, status, answer))
        if status >= 400:
            raise Failed(f"{method} {path}: {status} {answer.get('error', '')}")
        return answer

    def download(self, link: str) -> bytes:
        """The content of a signed link; needs no key."""
        request = urllib.request.Request(urljoin(self.url, link))  # noqa: S310
        status, content = self._sent(request)
        if status != 200:
            raise Failed(f"the download answered {status}")
        return content

    def _sent(self, request: urllib.request.Request) -> tuple[int, bytes]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            raise Failed(f"nobody answers at {self.url} ({reason}); wfcore up starts it") from None
