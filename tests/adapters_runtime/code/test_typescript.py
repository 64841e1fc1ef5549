"""TypeScript that becomes JavaScript when a workflow is applied."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.code.typescript import StrippedSource, without_types
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import CodeStep, Language, LoopStep
from wfcore.testing.contracts.steps import job, silent
from wfserver.definitions.read import checked

TYPED = "const one: number = 1;\nconsole.log(one as number);"
FLOW = """
name: flow
steps:
  - name: outer
    kind: loop
    items: [1]
    as: item
    steps:
      - name: inner
        kind: code
        language: typescript
        source: |
          const one: number = 1;
          {more}
          console.log(one);
"""


@pytest.fixture(autouse=True)
def _able(able: Callable[[Language], None]) -> None:
    able(Language.TYPESCRIPT)


def flow(more: str = "") -> Any:
    return checked(FLOW.replace("{more}", more).encode(), "flow.yaml")


def test_types_become_blanks() -> None:
    """An applied step has its source as JavaScript beside it, place for place, nested ones too."""
    (outer,) = flow().steps
    assert isinstance(outer, LoopStep)
    (inner,) = outer.steps
    assert isinstance(inner, CodeStep)
    assert inner.javascript is not None
    assert [len(line) for line in inner.javascript.splitlines()] == [
        len(line) for line in inner.source.splitlines()
    ]
    assert ": number" not in inner.javascript


def test_more_than_types_is_refused_when_applied() -> None:
    """Syntax that is not only types is a mistake of the definition, with its place."""
    with pytest.raises(InvalidDefinition) as refused:
        flow("enum Colour { red }")
    (problem,) = refused.value.problems
    assert problem.path == "steps[0].steps[0].source"
    assert "line 2: TypeScript enum is not supported" in problem.message


async def test_it_runs_as_javascript(tmp_path: Path, files: Any) -> None:
    """What was made at apply is what runs: its errors are at the lines of the source."""
    step = CodeStep("s", Language.TYPESCRIPT, TYPED, javascript="console.log(2)\n\nthrow 3")
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "a")
    end = await runner.run(evolve(job(TYPED), step=step), silent)
    await runner.close()
    assert "main.js:3" in str(end.error)


def test_without_node() -> None:
    """Where Node cannot be started nothing is said, and the step keeps its types."""
    assert without_types([TYPED], "/nowhere/node") == [StrippedSource()]
