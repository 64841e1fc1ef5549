"""A small HTTP client for commands: JSON requests with a key, with the standard library."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, ClassVar
from urllib.parse import quote, urljoin, urlsplit

from attrs import define, field, frozen

from wfcore.errors import InvalidInput
from wfcore.usecases.administration.operations import OPERATIONS
from wfcore.usecases.administration.operator import Operation, given
from wfserver.errors import CommandFailed
from wfserver.terminal.perform import KEY, Perform

_TIMEOUT_S = 30.0
_PART = 1 << 18


class ServerRefused(CommandFailed):
    """Raised for an error of the server: its *status*, and its message *says*."""

    exit_status: ClassVar[int] = 1

    def __init__(self, request: str, status: int, says: str) -> None:
        super().__init__(f"{request}: {status} {says}")
        self.status = status
        self.says = says


@frozen
class Exchange:
    """A request and its answer."""

    method: str
    path: str
    body: Any
    status: int
    answer: Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an answer, because following it could take the key to another host."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        return None


@define
class Api:
    """
    The API at *url*. *heard* is called with every exchange. The key is never sent to another host.
    """

    url: str
    key: str = field(repr=False)
    heard: Callable[[Exchange], None] = lambda exchange: None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """
        The JSON of the answer. Raises `ServerRefused` for an error of the server, `CommandFailed`
        if nobody answers or the answer is not wfcore's.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310
        status, content = self._sent(request)
        try:
            answer = json.loads(content)
        except ValueError:
            raise CommandFailed(f"{self.url} answers {status}, but is no wfcore server") from None
        self.heard(Exchange(method, path, body, status, answer))
        if not 200 <= status < 300:
            says = answer.get("error", "") if isinstance(answer, dict) else ""
            raise ServerRefused(f"{method} {path}", status, str(says))
        return answer

    def download(self, link: str, write: Callable[[bytes], object]) -> None:
        """
        Pass the content behind a signed link to *write* in parts. The link needs no key, and may
        lead to a bucket. Raises `CommandFailed`.
        """
        request = urllib.request.Request(urljoin(self.url, link))  # noqa: S310
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as response:
                while part := response.read(_PART):
                    write(part)
        except urllib.error.HTTPError as refused:
            raise CommandFailed(f"the download answered {refused.code}") from None
        except (urllib.error.URLError, OSError, HTTPException) as error:
            raise CommandFailed(
                f"the download broke off: {getattr(error, 'reason', error)}"
            ) from None

    def _sent(self, request: urllib.request.Request) -> tuple[int, bytes]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
        try:
            try:
                response = opener.open(request, timeout=_TIMEOUT_S)
            except urllib.error.HTTPError as refused:
                response = refused
            with response:
                return response.status, response.read()
        except (urllib.error.URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise CommandFailed(
                f"nobody answers at {self.url} ({reason}); wfcore up starts it"
            ) from None


_KEY = re.compile(r"[!-~]+")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    plain = "@" not in parts.netloc and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain


_NAMES = {operation: name for name, operation in OPERATIONS.items()}
_NO_ADMIN = (
    f"the server does not take the key in {KEY}: it must be of scope ADMIN, which an operator of "
    "that server makes on its host: wfcore key create --scope ADMIN"
)


def administration(url: str, key: str | None) -> Perform:
    """
    A `Perform` that sends operations to the server at *url*. Raises `InvalidInput` for a URL that
    no server can have, and without a key.
    """
    if not _is_address(url):
        raise InvalidInput("--url", "must be like https://wf.example.org, without a user")
    key = (key or "").strip()
    if not _KEY.fullmatch(key):
        raise InvalidInput(KEY, "must hold a key of scope ADMIN of that server, with --url")
    api = Api(url, key)

    def perform(operation: Operation[Any], /, **parameters: Any) -> Any:
        path = f"/api/admin/{quote(_NAMES[operation])}"
        try:
            return api.call("POST", path, given(parameters))
        except ServerRefused as refused:
            if refused.status == 401:
                raise CommandFailed(_NO_ADMIN) from None
            raise CommandFailed(refused.says or str(refused)) from None

    return perform
