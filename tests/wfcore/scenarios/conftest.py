"""Files of scenarios beside a definition, as tests of `wfcore test` write them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from wfserver.definitions.scenarios import ScenarioResult, load

Play = Callable[..., Sequence[ScenarioResult]]
"""Takes the text of a definition and of scenarios, and other definitions by file name."""


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Play scenarios of a definition, which need not name it."""

    def play(definition: str, scenarios: str, **others: str) -> Sequence[ScenarioResult]:
        (tmp_path / "flow.yaml").write_text(definition)
        for name, text in others.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        file = tmp_path / "flow.test.yaml"
        workflows = "".join(f"  - {name}.yaml\n" for name in others)
        head = "definition: flow.yaml\n" + (f"workflows:\n{workflows}" if others else "")
        file.write_text(head + scenarios)
        loaded = load(str(file))
        return [loaded.run(line, one) for line, one in loaded.scenarios()]

    return play


def wrong(ran: Sequence[ScenarioResult]) -> str:
    """Everything that is not as expected, as one text."""
    return "\n".join(line for one in ran for line in one.wrong)
