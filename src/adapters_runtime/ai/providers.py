"""
The providers of models that the operator configures in the environment. AI-6, AI-8.

`openai` and `anthropic` use the variables of their own tools. Any other provider uses
`WFCORE_AI_<NAME>_BASE_URL`, `_API_KEY` and `_KIND`; definitions write its name in lower case.
"""

import re
from collections.abc import Mapping, MutableMapping
from enum import StrEnum
from urllib.parse import urlsplit

from attrs import field, frozen

from wfcore.errors import InvalidInput


class ProviderKind(StrEnum):
    """The wire protocols."""

    OPENAI = "openai"
    """Chat completions, the protocol of OpenAI, Ollama, vLLM, llama.cpp and many others."""
    ANTHROPIC = "anthropic"
    """Messages, the protocol of Anthropic."""


@frozen
class Provider:
    """A provider of models. `setting`: the variable that holds the key."""

    name: str
    kind: ProviderKind
    base_url: str
    setting: str
    api_key: str = field(default="", repr=False)

    @property
    def in_the_clear(self) -> bool:
        """Whether the key would cross a network unencrypted."""
        where = urlsplit(self.base_url)
        local = (where.hostname or "") in ("localhost", "127.0.0.1", "::1")
        return bool(self.api_key) and where.scheme == "http" and not local


DEFAULTS = {
    "openai": (ProviderKind.OPENAI, "https://api.openai.com/v1"),
    "anthropic": (ProviderKind.ANTHROPIC, "https://api.anthropic.com"),
}
_PREFIX = "WFCORE_AI_"
_OURS = re.compile(rf"{_PREFIX}([A-Z][A-Z0-9_]*?)_(KIND|BASE_URL|API_KEY)")


def providers_from(environment: Mapping[str, str]) -> Mapping[str, Provider]:
    """The configured providers, by name. Raises `InvalidInput` that names a variable."""
    names = {
        name
        for name in DEFAULTS
        if environment.get(f"{name.upper()}_API_KEY") or environment.get(f"{name.upper()}_BASE_URL")
    }
    for variable, value in environment.items():
        if value and (match := _OURS.fullmatch(variable)):
            names.add(match[1].lower())
    return {name: _provider(environment, name) for name in sorted(names)}


def is_of_a_provider(variable: str) -> bool:
    """Whether *variable* configures a provider."""
    return _OURS.fullmatch(variable) is not None


def settings_like(variable: str) -> list[str]:
    """The settings of the provider that *variable* names, as suggestions."""
    name = variable.removeprefix(_PREFIX).split("_")[0]
    return [f"{_PREFIX}{name}_{what}" for what in ("KIND", "BASE_URL", "API_KEY")]


def setting_of(name: str) -> str:
    """The variable that configures the provider *name*."""
    if name in DEFAULTS:
        return f"{name.upper()}_API_KEY"
    return f"{_PREFIX}{name.upper()}_BASE_URL"


def forget_keys(environment: MutableMapping[str, str]) -> None:
    """Remove every key from *environment*, so that no later process inherits it."""
    for variable in list(environment):
        match = _OURS.fullmatch(variable)
        own = variable in {f"{name.upper()}_API_KEY" for name in DEFAULTS}
        if own or (match and match[2] == "API_KEY"):
            del environment[variable]


def _provider(environment: Mapping[str, str], name: str) -> Provider:
    default_kind, default_url = DEFAULTS.get(name, (ProviderKind.OPENAI, ""))
    ((key_setting, key), (url_setting, url), (kind_setting, kind)) = (
        _set(environment, name, what) for what in ("API_KEY", "BASE_URL", "KIND")
    )
    if kind and kind not in tuple(ProviderKind):
        raise InvalidInput(kind_setting, f"must be one of {', '.join(ProviderKind)}")
    if not url and not default_url:
        raise InvalidInput(url_setting, "is missing; the provider is named by other variables")
    return Provider(
        name,
        ProviderKind(kind) if kind else default_kind,
        _checked_url(url_setting, url or default_url),
        key_setting,
        _checked_key(key_setting, key),
    )


def _set(environment: Mapping[str, str], name: str, what: str) -> tuple[str, str]:
    """
    The variable that applies, and its value. Variables of wfcore take precedence over the variables
    of the provider's own tools.
    """
    ours, own = f"{_PREFIX}{name.upper()}_{what}", f"{name.upper()}_{what}"
    value = environment.get(ours, "").strip()
    if value or name not in DEFAULTS or what == "KIND":
        return ours, value
    return own, environment.get(own, "").strip()


def _checked_url(setting: str, text: str) -> str:
    """
    The URL in *text*. Raises `InvalidInput`, which does not show *text*, because it may contain a
    password.
    """
    try:
        url = urlsplit(text)
        fine = url.scheme in ("http", "https") and bool(url.hostname) and text.isascii()
        fine = fine and (url.port is None or url.port > 0)
        bare = not (url.username or url.password or url.query or url.fragment)
    except ValueError:
        fine = bare = False
    if not fine or re.search(r"\s", text):
        raise InvalidInput(setting, "must be a URL that begins with http:// or https://")
    if not bare:
        raise InvalidInput(setting, "must have neither user, password, query nor fragment")
    return text.rstrip("/")


def _checked_key(setting: str, text: str) -> str:
    if not re.fullmatch(r"[!-~]*", text):
        raise InvalidInput(setting, "must be visible ASCII characters without blanks")
    return text
