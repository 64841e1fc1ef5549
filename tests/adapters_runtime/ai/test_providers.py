"""Providers as the environment names them."""

import pytest

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import ProviderKind, forget_keys, providers_from, setting_of
from tests.support.model_server import KEY
from wfcore.errors import InvalidInput
from wfcore.ports.models import ModelRefused, ModelRequest


def test_none() -> None:
    """Nothing set is no provider, and nothing else. AI-8."""
    assert providers_from({"PATH": "/bin", "OPENAI_API_KEY": "", "WFCORE_AI_X_API_KEY": ""}) == {}


def test_the_two_that_everybody_knows() -> None:
    """Their own variables are enough; a base URL alone is enough, too."""
    found = providers_from({"OPENAI_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://gate/ant/"})
    openai, anthropic = found["openai"], found["anthropic"]
    assert (openai.kind, openai.base_url) == (ProviderKind.OPENAI, "https://api.openai.com/v1")
    assert (openai.api_key, openai.setting) == (KEY, "OPENAI_API_KEY")
    assert (anthropic.kind, anthropic.base_url) == (ProviderKind.ANTHROPIC, "http://gate/ant")
    assert anthropic.api_key == ""


def test_others_by_name() -> None:
    """Any name with a base URL is a provider; its kind is chat completions unless it says."""
    found = providers_from(
        {
            "WFCORE_AI_OLLAMA_BASE_URL": "http://localhost:11434/v1",
            "WFCORE_AI_MY_GATE_BASE_URL": "https://gate.example/api",
            "WFCORE_AI_MY_GATE_KIND": "anthropic",
            "WFCORE_AI_MY_GATE_API_KEY": f" {KEY}\n",
            "WFCORE_AI_PRICES": "/etc/prices.json",
            "WFCORE_AI_CONCURRENCY": "4",
        }
    )
    assert set(found) == {"my_gate", "ollama"}
    assert (found["ollama"].kind, found["my_gate"].kind) == (
        ProviderKind.OPENAI,
        ProviderKind.ANTHROPIC,
    )
    assert found["my_gate"].api_key == KEY
    assert found["my_gate"].setting == "WFCORE_AI_MY_GATE_API_KEY"


def test_ours_win() -> None:
    """The service's own variables win over those that other tools read, too."""
    found = providers_from({"OPENAI_API_KEY": "theirs", "WFCORE_AI_OPENAI_API_KEY": "ours"})
    assert found["openai"].api_key == "ours"


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("WFCORE_AI_X_BASE_URL", "localhost:11434", "WFCORE_AI_X_BASE_URL: must be a URL"),
        ("WFCORE_AI_X_BASE_URL", "file:///etc/passwd", "must be a URL"),
        ("WFCORE_AI_X_BASE_URL", "http://[::1", "must be a URL"),
        ("WFCORE_AI_X_BASE_URL", "http://a:99999", "must be a URL"),
        ("WFCORE_AI_X_BASE_URL", "http://a b/", "must be a URL"),
        ("WFCORE_AI_X_BASE_URL", f"http://me:{KEY}@host/", "neither user, password"),
        ("WFCORE_AI_X_BASE_URL", f"http://host/?key={KEY}", "neither user, password"),
        ("WFCORE_AI_X_KIND", "gemini", "WFCORE_AI_X_KIND: must be one of openai, anthropic"),
        ("WFCORE_AI_X_API_KEY", KEY, "WFCORE_AI_X_BASE_URL: is missing"),
        ("OPENAI_API_KEY", f"{KEY}\nX-Evil: 1", "visible ASCII"),
        ("OPENAI_API_KEY", f"{KEY} {KEY}", "visible ASCII"),
    ],
)
def test_what_cannot_be_is_named(variable: str, value: str, says: str) -> None:
    """A variable that cannot be right is named, and its value is not shown. AI-6."""
    with pytest.raises(InvalidInput) as caught:
        providers_from({variable: value})
    assert says in str(caught.value)
    assert KEY not in f"{caught.value} {caught.value!r}"


def test_a_key_is_not_in_the_repr() -> None:
    """A provider that ends up in a log shows no key. AI-6."""
    assert KEY not in repr(providers_from({"OPENAI_API_KEY": KEY}))


def test_keys_leave_the_environment() -> None:
    """After reading, no key is left to be inherited; everything else stays. AI-6."""
    environment = {
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_API_KEY": KEY,
        "WFCORE_AI_X_API_KEY": KEY,
        "OPENAI_BASE_URL": "http://x",
        "PATH": "/bin",
    }
    forget_keys(environment)
    assert environment == {"OPENAI_BASE_URL": "http://x", "PATH": "/bin"}


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        ("openai:gpt", "OPENAI_API_KEY"),
        ("anthropic:c", "ANTHROPIC_API_KEY"),
        ("ollama:m", "WFCORE_AI_OLLAMA_BASE_URL"),
    ],
)
async def test_a_missing_provider_says_what_to_set(model: str, setting: str) -> None:
    """The error of a step without provider names the variable to set. AI-8."""
    with pytest.raises(ModelRefused, match=f"set {setting} for the server"):
        await WireModels({}).ask(ModelRequest(model, "Say it"))
    assert setting_of(model.partition(":")[0]) == setting


@pytest.mark.parametrize(
    ("url", "clear"),
    [("http://gate.example/v1", True), ("https://gate.example", False), ("http://[::1]:1", False)],
)
def test_keys_that_cross_a_network_in_the_clear(url: str, clear: bool) -> None:
    """Plain HTTP to another host is told of; loopback is fine."""
    found = providers_from({"WFCORE_AI_X_BASE_URL": url, "WFCORE_AI_X_API_KEY": KEY})
    assert found["x"].in_the_clear is clear
