"""Every execution is accepted in one place, so that limits hold at every door."""

import ast
from pathlib import Path

USECASES = Path(__file__).parents[2] / "src" / "wfcore" / "usecases"
THE_DOOR = "starting.py"


def imported_from(path: Path, module: str) -> set[str]:
    """The names that *path* imports from *module*."""
    return {
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    }


def test_executions_are_accepted_in_one_place() -> None:
    """Whoever starts one asks `enqueue`: what it stores is in its group, with room. CC-1, CC-4."""
    doors = {
        path.name
        for path in USECASES.rglob("*.py")
        if "accept" in imported_from(path, "wfcore.rules.execution.start")
    }
    assert doors == {THE_DOOR}
