"""The port `Models` over this server's providers. AI-3 to AI-6, AI-8."""

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve

from adapters_runtime.ai.anthropic import Anthropic
from adapters_runtime.ai.dialect import Dialect, Manner, adapted, json_bytes
from adapters_runtime.ai.failures import SECRET_LENGTH, failure_of, message_in, quote_of
from adapters_runtime.ai.openai import OpenAi, first_manner
from adapters_runtime.ai.providers import Provider, ProviderKind, setting_of
from adapters_runtime.code.outputs import parse
from adapters_runtime.pinned_http import (
    Choice,
    ExchangeFailed,
    HostShort,
    HttpReply,
    NotAllowed,
    NotConnected,
    NotResolved,
    NotTrusted,
    PinnedHttp,
)
from wfcore.ports.models import (
    AnswerLost,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelReply,
    ModelRequest,
    NotAsked,
)
from wfcore.rules.address import is_host
from wfcore.rules.masking import mask_text, secrets_of

MOST_BYTES = 10 * 1_048_576
"""The most bytes of an answer."""
MOST_TEXT = 1_048_576
"""The most characters of an answer's text."""
_REMEMBERED = 1_000
_BAD_REQUEST = (400, 422)

DIALECTS: Mapping[ProviderKind, Dialect] = {
    ProviderKind.OPENAI: OpenAi(),
    ProviderKind.ANTHROPIC: Anthropic(),
}


class WireModels:
    """
    The `Models` over the wire protocols of *providers*.

    The operator chooses the addresses. Loopback and private addresses are allowed, for local
    models. Addresses that cannot be a host (`is_host`) are refused.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        http: Callable[[Choice], PinnedHttp] = PinnedHttp,
    ) -> None:
        self.providers = providers
        self._http = http(_hosts)
        self._manners: dict[str, Manner] = {}

    async def ask(self, question: ModelRequest) -> ModelReply:
        """Ask *question*, again in another form if the provider refuses the form."""
        provider, name = self._found(question.model)
        manner = self._manners.get(question.model, first_manner(provider))
        while True:
            reply = await self._sent(provider, name, question, manner)
            if reply.status == 200:
                return _without(provider.api_key, _read(provider, reply))
            other = None
            if reply.status in _BAD_REQUEST:
                other = adapted(manner, message_in(reply))
            if other is None:
                raise failure_of(provider, name, reply)
            manner = other
            if len(self._manners) >= _REMEMBERED:
                self._manners.clear()
            self._manners[question.model] = manner

    async def probe(self, provider: Provider) -> str:
        """
        A text for people on a provider's answer to a free request, its list of models.

        Raises `ModelFailed`.
        """
        dialect = DIALECTS[provider.kind]
        path = dialect.models_path.removeprefix("/v1" * provider.base_url.endswith("/v1"))
        url = provider.base_url + path
        reply = await self._exchange("GET", url, dialect.headers(provider))
        if reply.status == 404:
            return "answers, but has no list of models"
        if reply.status != 200:
            raise failure_of(provider, "", reply)
        return "answers"

    async def _sent(
        self, provider: Provider, name: str, question: ModelRequest, manner: Manner
    ) -> HttpReply:
        dialect = DIALECTS[provider.kind]
        body = json_bytes(dialect.body(question, name, manner))
        headers = {"content-type": "application/json", **dialect.headers(provider)}
        if question.traceparent is not None:
            headers["traceparent"] = question.traceparent
        url = provider.base_url + dialect.path(provider)
        return await self._exchange("POST", url, headers, body)

    async def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpReply:
        headers = {"accept": "application/json", **headers}
        try:
            return await self._http.exchange(method, url, headers, body, MOST_BYTES)
        except ExchangeFailed as failure:
            raise _meaning(failure) from None

    def _found(self, model: str) -> tuple[Provider, str]:
        name, _, at_provider = model.partition(":")
        provider = self.providers.get(name)
        if provider is None:
            setting = setting_of(name)
            raise ModelRefused(f"provider {name} is not configured: set {setting} for the server")
        return provider, at_provider


def _hosts(addresses: Sequence[str]) -> Sequence[str]:
    return [one for one in addresses if is_host(one)]


def _meaning(failure: ExchangeFailed) -> ModelFailed:
    """The failure for the model: busy if nothing was sent, lost if the request may have arrived."""
    match failure:
        case HostShort():
            return NotAsked(str(failure))
        case NotAllowed():
            return ModelRefused(f"{failure}, which is no host to ask")
        case NotTrusted():
            return ModelRefused(str(failure))
        case NotResolved() | NotConnected():
            return ModelBusy(str(failure))
        case _:
            return AnswerLost(str(failure))


def _read(provider: Provider, reply: HttpReply) -> ModelReply:
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise AnswerLost(f"provider {provider.name} answered {kind or 'nothing'} instead of JSON")
    try:
        document = parse(reply.body)
    except ValueError as problem:
        raise AnswerLost(f"provider {provider.name} answered invalid JSON: {problem}") from None
    if isinstance(document, dict) and document.get("error"):
        quote = quote_of(provider, reply)
        raise AnswerLost(f"provider {provider.name} answered 200 with an error{quote}")
    answer = DIALECTS[provider.kind].answer(document)
    if len(answer.text) > MOST_TEXT:
        raise AnswerLost(f"the answer's text is over {MOST_TEXT:,} characters")
    return answer


def _without(key: str, answer: ModelReply) -> ModelReply:
    """*answer* with the provider's *key* masked in its text. AI-6."""
    if len(key) < SECRET_LENGTH:
        return answer
    return evolve(answer, text=mask_text(answer.text, secrets_of([key])))
