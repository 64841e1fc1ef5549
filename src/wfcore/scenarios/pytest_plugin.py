"""
Scenarios of definitions as tests of pytest: `pytest --wfcore workflows/`.

Only pytest and the standard library are imported here, because pytest loads this module in every
run of a project with wfcore installed. The player of scenarios belongs to the server. The core
knows only the player's name, and loads the player when there are scenarios to collect.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

SCENARIOS, FILES = "wfserver.definitions.scenarios", "wfserver.definitions.read"
FAILURES = "wfserver.failures"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--wfcore`: the files `*.test.yaml` in these folders are collected."""
    parser.getgroup("wfcore").addoption(
        "--wfcore",
        action="append",
        default=[],
        metavar="PATH",
        help="collect scenarios of workflow definitions (*.test.yaml) in this file or folder",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the paths of the option to the arguments, so that pytest collects these paths."""
    if config.getoption("--wfcore"):
        _require_server()
    for path in config.getoption("--wfcore"):
        whole = str(_absolute(config, path))
        if not Path(whole).exists():
            raise pytest.UsageError(f"--wfcore: there is no {path}")
        if not any(Path(whole).is_relative_to(_absolute(config, arg)) for arg in config.args):
            config.args.append(whole)  # not beside a folder around it: pytest 8 mixes these up


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep the folders that lead to these paths, even if `norecursedirs` excludes them."""
    named = (_absolute(config, path) for path in config.getoption("--wfcore"))
    return False if any(path.is_relative_to(collection_path) for path in named) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The collector for a file of scenarios at or below one of the paths; None for other files."""
    named = [_absolute(parent.config, path) for path in parent.config.getoption("--wfcore")]
    if not any(file_path.is_relative_to(path) for path in named):
        return None
    if not import_module(FILES).is_scenarios(file_path):
        return None
    return ScenarioModule.from_parent(parent, path=file_path)


def _require_server() -> None:
    """
    Raises `pytest.UsageError` if only the base is installed; the message has the command that
    installs the server.
    """
    try:
        import_module(SCENARIOS)
    except ModuleNotFoundError as error:
        errors = import_module("wfcore.errors")
        lacking = errors.MissingExtra("pytest --wfcore", "server", error.name or "")
        raise pytest.UsageError(str(lacking)) from None


def _absolute(config: pytest.Config, path: str) -> Path:
    return (config.invocation_params.dir / path).resolve()


class ScenarioModule(pytest.File):
    """A file of scenarios."""

    def collect(self) -> Iterator[pytest.Item]:
        """
        The scenarios of the file. A scenario with mistakes is an error of collection, which names
        the mistakes.
        """
        loaded = import_module(SCENARIOS).load(str(self.path))
        for line, scenario in loaded.scenarios():
            item: Any = ScenarioItem.from_parent(self, name=scenario.name)
            item.loaded, item.line, item.scenario = loaded, line, scenario
            yield item

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The mismatches of the scenario, without a traceback."""
        failures = import_module(FAILURES)
        if failures.is_expected(excinfo.value):
            return failures.explain(excinfo.value)
        return super().repr_failure(excinfo)


class ScenarioItem(pytest.Item):
    """One scenario."""

    loaded: Any
    line: int
    scenario: Any

    def runtest(self) -> None:
        """Play the scenario."""
        ran = self.loaded.run(self.line, self.scenario)
        if ran.wrong:
            raise NotAsExpected("\n".join(ran.wrong))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The unmet expectations, without a traceback of wfcore."""
        if isinstance(excinfo.value, NotAsExpected):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The place of the scenario in its file."""
        return self.path, self.line - 1, self.name


class NotAsExpected(Exception):
    """A result that differs from the expectations of its scenario."""
