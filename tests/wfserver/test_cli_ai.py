"""What the command line says of providers of models, and AI steps that it runs here."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.model_server import KEY, ModelServer, a_model_server, refuses, says
from wfcore.installed import install

from .conftest import Call, Said

ASK = """
name: Ask
steps: [{name: ask, kind: ai, model: "local:m", prompt: "Say {{ variables.word }}"}]
variables: {word: {default: it}}
"""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A provider `local` in the environment, and no other."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with a_model_server() as made:
        monkeypatch.setenv("WFCORE_AI_LOCAL_BASE_URL", made.openai)
        monkeypatch.setenv("WFCORE_AI_LOCAL_API_KEY", KEY)
        yield made


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    file = tmp_path / "ask.yaml"
    file.write_text(ASK)
    return file


def checks(said: Said) -> dict[str, Any]:
    return {check["name"]: check for check in said.json["checks"]}


def test_providers_are_named(wfcore: Call, provider: ModelServer) -> None:
    """`doctor` says where each provider is and whether it has a key, and asks nobody. AI-6."""
    said = wfcore("doctor", "--json")
    found = checks(said)["providers"]
    assert found["ok"]
    assert found["detail"] == f"local (openai) at {provider.openai} with a key"
    assert KEY not in said.out + said.err
    assert provider.asked == []


def test_none_is_fine(wfcore: Call, provider: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without providers `doctor` is content: only AI steps need one. AI-8."""
    monkeypatch.delenv("WFCORE_AI_LOCAL_BASE_URL")
    monkeypatch.delenv("WFCORE_AI_LOCAL_API_KEY")
    found = checks(wfcore("doctor", "--json"))["providers"]
    assert (found["ok"], found["detail"]) == (True, "none; AI steps need one")


def test_whether_a_provider_answers(
    wfcore: Call, provider: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`doctor --online` asks for the list of models, which costs nothing, with the key."""
    fine = checks(wfcore("doctor", "--online", "--json"))["provider local"]
    assert (fine["ok"], fine["detail"]) == (True, "answers")
    (asked,) = provider.asked
    assert (asked.method, asked.path) == ("GET", "/v1/models")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("WFCORE_AI_LOCAL_API_KEY", KEY)
    provider.will(refuses(401, f"no such key {KEY}"))
    said = wfcore("doctor", "--online", "--json")
    bad = checks(said)["provider local"]
    assert said.status == 0
    assert (bad["ok"], KEY in said.out) == (False, False)
    assert bad["detail"].endswith("refused the key (401); check WFCORE_AI_LOCAL_API_KEY")
    assert "WFCORE_AI_LOCAL_API_KEY" in bad["cure"]


def test_a_missing_provider_is_told(
    wfcore: Call, provider: ModelServer, flow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`apply` warns and applies; `doctor` names the workflow and what to set. AI-8."""
    apply = ("workflow", "apply", str(flow), "--owner", "ann@example.org", "--json")
    assert set(wfcore(*apply).json) == {"id", "name", "version"}
    monkeypatch.delenv("WFCORE_AI_LOCAL_BASE_URL")
    monkeypatch.delenv("WFCORE_AI_LOCAL_API_KEY", raising=False)
    flow.write_text(ASK.replace('prompt: "Say', 'prompt: "Do say'))
    said = wfcore(*apply)
    warning = (
        "provider local is not configured here: set WFCORE_AI_LOCAL_BASE_URL where the server runs"
    )
    assert said.status == 0
    assert said.json["warnings"] == [warning]
    assert f"warning: {warning}" in said.err
    found = checks(wfcore("doctor", "--json"))["providers"]
    assert not found["ok"]
    assert "local is used by Ask" in found["detail"]
    assert found["cure"] == "set WFCORE_AI_LOCAL_BASE_URL"


@pytest.mark.parametrize("library", ["genai_prices", "jsonschema_rs"])
def test_without_the_extra_it_says_what_to_install(
    wfcore: Call,
    provider: ModelServer,
    flow: Path,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
) -> None:
    """Where the libraries of AI steps are missing, they are refused with the step and the cure."""
    monkeypatch.setitem(sys.modules, library, None)
    for document in (ASK, ASK.replace("prompt:", "schema: {type: object}, prompt:")):
        flow.write_text(document)
        said = wfcore("run", str(flow))
        assert said.status == 1
        assert f"AI steps cannot run here: {install('ai')}" in said.err
        assert f"{flow}:3" in said.err
    found = checks(wfcore("doctor", "--json"))["providers"]
    assert (found["ok"], found["cure"]) == (False, install("ai"))
    assert provider.asked == []


def test_keys_leave_the_environment(wfcore: Call, provider: ModelServer) -> None:
    """Once settings are read, nothing that the process starts inherits a key. AI-6."""
    assert wfcore("account", "list").status == 0
    assert "WFCORE_AI_LOCAL_API_KEY" not in os.environ
    assert os.environ["WFCORE_AI_LOCAL_BASE_URL"] == provider.openai


def test_a_wrong_setting_is_named(
    wfcore: Call, provider: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that cannot be right stops the command, naming the variable."""
    monkeypatch.setenv("WFCORE_AI_LOCAL_KIND", "gemini")
    said = wfcore("account", "list")
    assert said.status != 0
    assert "WFCORE_AI_LOCAL_KIND: must be one of openai, anthropic" in said.err


def test_run_here(call: Call, provider: ModelServer, flow: Path) -> None:
    """`wfcore run` asks the environment's providers, too. AI-1."""
    provider.will(says("ahoy"))
    said = call("run", str(flow), "-i", "word=ahoy", "--json")
    assert (said.status, said.json["output"]) == (0, "ahoy")
    assert said.json["usage"] == {"inputTokens": 12, "outputTokens": 3, "costUsd": None}
    assert provider.asked[0].prompt == "Say ahoy"


def test_prices_that_cannot_be_read(
    call: Call, provider: ModelServer, flow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A price file that cannot be right is named before anything runs."""
    monkeypatch.setenv("WFCORE_AI_PRICES", str(flow))
    said = call("run", str(flow))
    assert said.status != 0
    assert "WFCORE_AI_PRICES: cannot read" in said.err
    assert provider.asked == []
