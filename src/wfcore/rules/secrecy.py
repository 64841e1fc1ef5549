"""Masking: values of secret variables never appear where somebody looks. Contract §4."""

import json
from collections.abc import Iterable, Iterator, Mapping

from wfcore.model.execution import Execution
from wfcore.model.json import Json
from wfcore.rules.variables import compact

MASK = "***"
_SHORTEST = 4
"""Shorter ones would mask half the alphabet; they are masked only where they stand alone. SC-3."""


def secret_values(run: Execution) -> tuple[str, ...]:
    """The texts to be masked in what *run* shows, longest first. SC-1, SC-2."""
    texts: set[str] = set()
    for name in run.secrets:
        for text in _texts(run.variables.get(name)):
            texts |= {text, *_as_written(text)}
    return tuple(sorted(texts - {""}, key=lambda text: (-len(text), text)))


def _texts(value: Json) -> Iterator[str]:
    """A secret as text; of an object or array also every text and number in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (compact(value) if value else "", *_inside(value.values()))
    elif isinstance(value, list | tuple):
        yield from (compact(value) if value else "", *_inside(value))
    elif value is not None:
        yield compact(value)


def _inside(values: Iterable[Json]) -> Iterator[str]:
    """true and false are left out: masked wherever they stand, they would hide everything."""
    for value in values:
        if not isinstance(value, bool):
            yield from _texts(value)


def _as_written(text: str) -> Iterator[str]:
    """How else a text turns up in logs: escaped by a JSON writer, or line by line."""
    yield from (json.dumps(text, ensure_ascii=escaped)[1:-1] for escaped in (True, False))
    yield from (line for line in text.splitlines() if len(line) >= _SHORTEST)


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """*text* with every secret replaced."""
    for secret in secrets:
        if text == secret:
            return MASK
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, MASK)
    return text


def mask(value: Json, secrets: tuple[str, ...]) -> Json:
    """*value* with every secret replaced in all its strings, keys too. SC-1."""
    if not secrets:
        return value
    if isinstance(value, str):
        return mask_text(value, secrets)
    if isinstance(value, Mapping):
        return {mask_text(key, secrets): mask(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask(item, secrets) for item in value]
    return MASK if compact(value) in secrets else value
