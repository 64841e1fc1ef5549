"""Masking: values of secret variables never appear where somebody looks. Contract §4."""

from collections.abc import Iterable, Mapping

from wfcore.model.execution import Execution
from wfcore.model.json import Json
from wfcore.rules.variables import compact

MASK = "***"
_SHORTEST = 4
"""Shorter values would mask half the alphabet; they are masked only where they stand alone."""


def secret_values(run: Execution) -> tuple[str, ...]:
    """The texts to be masked in what *run* shows, longest first."""
    texts = set()
    for name in run.secrets:
        value = run.variables.get(name)
        if value is not None and value != "":
            texts.add(value if isinstance(value, str) else compact(value))
    return tuple(sorted(texts, key=len, reverse=True))


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """*text* with every secret replaced."""
    for secret in secrets:
        if text == secret:
            return MASK
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    return text


def mask(value: Json, secrets: tuple[str, ...]) -> Json:
    """*value* with every secret replaced in all its strings, keys too."""
    if not secrets:
        return value
    if isinstance(value, str):
        return mask_text(value, secrets)
    if isinstance(value, Mapping):
        return {mask_text(key, secrets): mask(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask(item, secrets) for item in value]
    return MASK if compact(value) in secrets else value
