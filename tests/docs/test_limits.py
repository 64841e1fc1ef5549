"""The page of limits: every number on it is the constant that it names."""

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from wfcore.rules import limits

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
ROW = re.compile(r"^\| (.+?) \| (.+?) \| `([\w.]+):([\w.]+)` \|$", re.M)
ROWS = ROW.findall(PAGE.read_text())
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SPANS = {"s": 1_000, "min": 60_000, "h": 3_600_000, "days": 86_400_000}


def constant(home: str, name: str) -> Any:
    """The value of `module:NAME`, or of `module:Class.field`, which is the field's default."""
    first, *fields = name.split(".")
    value = getattr(importlib.import_module(home), first)
    for one in fields:
        value = getattr(value(), one)
    return value


def written(text: str) -> float:
    """What *text* says: bytes, milliseconds, or a number."""
    number, _, unit = text.partition(" ")
    amount = float(number.replace(",", ""))
    return amount * {**UNITS, **SPANS}.get(unit, 1)


@pytest.mark.parametrize(("what", "limit", "home", "name"), ROWS)
def test_a_limit_is_what_the_code_says(what: str, limit: str, home: str, name: str) -> None:
    """The page says the number that holds."""
    value = constant(home, name)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    parts = limit.split(" / ")
    values = value if isinstance(value, tuple) else (value,)
    flat = [one for part in values for one in (part if isinstance(part, tuple) else (part,))]
    seconds = 1_000 if name.lower().endswith("_s") else 1
    assert len(parts) == len(flat), what
    for part, one in zip(parts, flat, strict=True):
        assert part == "none" if one is None else written(part) == one * seconds, what


def test_every_limit_of_the_rules_is_on_the_page() -> None:
    """No constant of `wfcore.rules.limits` is missing."""
    named = {name for _, _, home, name in ROWS if home == limits.__name__}
    constants = {name for name in vars(limits) if re.fullmatch(r"[A-Z][A-Z_]+", name)}
    units = {"KIB", "MIB", "HOUR", "MINUTE", "DAY"}
    assert named == constants - units
