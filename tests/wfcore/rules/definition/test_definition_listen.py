"""What a definition may say of listening."""

from typing import Any

import pytest

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import CodeStep, Listen
from wfcore.rules.definition.check import check_definition


def step(**fields: Any) -> CodeStep:
    given = {"name": "hook", "kind": "code", "language": "bash", "source": "true", **fields}
    found = check_definition({"name": "W", "steps": [given]}, MiniJinjaTemplates().problems)
    (only,) = found.steps
    assert isinstance(only, CodeStep)
    return only


@pytest.mark.parametrize(
    ("said", "meant"), [(False, None), (True, Listen.LOOPBACK), ("any", Listen.ANY)]
)
def test_where_a_step_listens(said: bool | str, meant: Listen | None) -> None:
    """Nowhere by default, on the loopback, or everywhere. CS-20."""
    assert step(network=True, listen=said).listen is meant
    assert step(network=True).listen is None


@pytest.mark.parametrize("said", ["all", 1, None, ["any"]])
def test_nothing_else_can_be_said(said: Any) -> None:
    """Other words and numbers are mistakes."""
    with pytest.raises(InvalidDefinition, match=r"steps\[0\].listen.*true, false or any"):
        step(network=True, listen=said)


def test_who_listens_has_a_network() -> None:
    """Without one there would be nobody to hear."""
    with pytest.raises(InvalidDefinition, match="needs network: true"):
        step(listen=True)
