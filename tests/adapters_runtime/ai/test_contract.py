"""What models and their prices promise, of the fakes, both wire protocols and the price list."""

import pytest
from attrs import frozen

from adapters_runtime.ai.prices import PriceList
from adapters_runtime.ai.providers import providers_from
from tests.support.model_server import ModelServer, cuts, hangs, refuses, says
from wfcore.ports.models import Finish
from wfcore.testing.contracts import ModelsContract, PricesContract
from wfcore.testing.models import MODEL, FixedPrices, ScriptedModels

FINISHES = {
    "local": {Finish.LENGTH: "length", Finish.DECLINED: "content_filter"},
    "anthropic": {Finish.LENGTH: "max_tokens", Finish.DECLINED: "refusal"},
}


@frozen
class WirePeer:
    """The local provider as the contract speaks to it."""

    server: ModelServer
    protocol: str

    @property
    def calls(self) -> int:
        return self.server.connected

    def says(self, text: str, finish: Finish = Finish.DONE, used: tuple[int, int] = (12, 3)):
        self.server.will(says(text, used, FINISHES[self.protocol].get(finish, "")))

    def is_busy(self, retry_after_s: float | None = None):
        headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
        self.server.will(refuses(429, "slow down", headers))

    def refuses(self):
        self.server.will(refuses(400, "no such thing"))

    def breaks_off(self):
        self.server.will(cuts)

    def hangs(self):
        self.server.will(hangs)


class TestScripted(ModelsContract):
    @pytest.fixture
    def peer(self) -> ScriptedModels:
        return ScriptedModels()

    @pytest.fixture
    def models(self, peer: ScriptedModels) -> ScriptedModels:
        return peer


class TestChatCompletions(ModelsContract):
    model = "local:some-model"

    @pytest.fixture
    def peer(self, server: ModelServer) -> WirePeer:
        return WirePeer(server, "local")


class TestMessages(ModelsContract):
    model = "anthropic:some-model"

    @pytest.fixture
    def peer(self, server: ModelServer) -> WirePeer:
        return WirePeer(server, "anthropic")


class TestFixedPrices(PricesContract):
    known, unknown = MODEL, "scripted:other"

    @pytest.fixture
    def prices(self) -> FixedPrices:
        return FixedPrices()


class TestPriceList(PricesContract):
    known, unknown = "openai:gpt-5-mini", "openai:no-such-model"

    @pytest.fixture
    def prices(self) -> PriceList:
        return PriceList({}, providers_from({"OPENAI_API_KEY": "k"}))
