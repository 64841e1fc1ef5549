"""Packages of steps on several nodes: pinned where a workflow is applied, made where it runs."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.package_index import Shelf, registry, wheel
from tests.support.postgres_server import emptied
from tests.system.scenarios.process import until
from tests.system.scenarios.site import Site
from wfcore import Engine
from wfcore.model.access import OPERATOR
from wfcore.model.explanation import Why
from wfcore.rules.execution import retry
from wfcore.usecases.executions.executions import read_execution
from wfserver.compose import open_system
from wfserver.serving.engine import engine, new_runner
from wfserver.settings.record import settings_from

from .conftest import Node, opened
from .test_abilities import ready, share_keys, why

LONG_S = 300
PYTHON = {
    "language": "python",
    "requirements": ["tiny==1.0"],
    "source": "import other, tiny; print(f'{tiny.__version__} of {other.__version__}')",
}
JAVASCRIPT = {
    "language": "javascript",
    "packages": {"@scope/modern": "2.0.0"},
    "source": "import { n } from '@scope/modern'; console.log(n)",
}
FLOW = """
steps:
  - name: work
    kind: code
    language: python
    requirements: [tiny==1.0]
    source: import tiny
"""
OUTPUTS = {"python": "1.0 of 2.0", "javascript": 2}


def step(about: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "work", "kind": "code", **about, **more}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    """What there is to install, and an operator of all nodes who has configured just that."""
    with registry() as npm:
        made = Shelf(tmp_path / "shelf", npm)
        for name, value in {**made.by_index(), "PIP_RETRIES": "0", "PIP_TIMEOUT": "300"}.items():
            monkeypatch.setenv(name, value)
        yield made


@asynccontextmanager
async def working(url: str, data: Path) -> AsyncIterator[tuple[Path, Engine]]:
    """A node that runs code steps as a server does; the folder of its packages."""
    settings = settings_from({"WFCORE_WARM": "0"}, data=str(data), store=url)
    async with open_system(settings) as system, engine(system, new_runner(system)) as made:
        yield settings.packages_folder, made


def complete(folder: Path) -> list[Path]:
    """The environments there that count."""
    return list(folder.glob("*/about.json"))


async def rests(node: Node, execution_id: str) -> str:
    """Its status in the end, however long the installers take."""
    while (status := await node.rests(execution_id)) in ("PENDING", "RUNNING"):
        pass
    return status


@pytest.fixture
async def applies(database: str, tmp_path: Path, shelf: Shelf) -> AsyncIterator[Node]:
    """A node that accepts and runs nothing."""
    async with opened(await emptied(database), tmp_path / "a") as node:
        share_keys(tmp_path / "a", tmp_path / "b")
        yield node


@pytest.mark.parametrize("about", [PYTHON, JAVASCRIPT], ids=OUTPUTS)
async def test_what_one_node_pinned_another_one_installs(
    applies: Node, database: str, tmp_path: Path, shelf: Shelf, about: dict[str, Any]
) -> None:
    """
    A node with an empty folder installs what was pinned, whatever was released since, once for two
    steps at once; later ones ask nobody. PK-5, PK-9.
    """
    output = OUTPUTS[about["language"]]
    sides = [{"name": side, "steps": [step(about, name=f"on_{side}")]} for side in ("l", "r")]
    both = await applies.start({"name": "both", "kind": "parallel", "branches": sides})
    shelf.npm.put_wheel(wheel(shelf.wheels, "other", "2.1"))
    shelf.npm.add("common", "1.1.0", {"index.js": "module.exports = {n: 7}"})
    shelf.npm.asked.clear()
    async with working(database, tmp_path / "b") as (folder, _), asyncio.timeout(LONG_S):
        assert await rests(applies, both) == "COMPLETED"
        results = (await read_execution(applies.services, OPERATOR, both)).step_results
        assert [results[key].output for key in ("on_l", "on_r")] == [output] * 2
        files = [path for path in shelf.npm.asked if path.endswith((".whl", ".tgz"))]
        assert len(files) == len(set(files)) == 2
        assert len(complete(folder)) == 1
        shelf.npm.away = True
        asked = len(shelf.npm.asked)
        assert await rests(applies, await applies.start(step(about))) == "COMPLETED"
        assert len(shelf.npm.asked) == asked


@pytest.mark.parametrize("about", [PYTHON, JAVASCRIPT], ids=OUTPUTS)
async def test_an_index_that_is_away_delays_a_step_and_fails_none(
    applies: Node, database: str, tmp_path: Path, shelf: Shelf, about: dict[str, Any]
) -> None:
    """
    `explain` quotes the installer, the node is ready for other steps, and once the index is back
    the same attempt begins. PK-5, EX-27.
    """
    run = await applies.start(step(about))
    shelf.npm.away = True
    async with working(database, tmp_path / "b") as (folder, node), asyncio.timeout(LONG_S):
        while Why.STEP_POSTPONED not in (told := await why(applies, run)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        quoted = f"{'pip' if about is PYTHON else 'npm'} could not install them: "
        assert f"its packages cannot be installed here: {quoted}" in told[Why.STEP_POSTPONED]
        assert not complete(folder)
        await ready(node)
        assert not node.gauges()["wfcore_machine_short"]
        shelf.npm.away = False
        assert await rests(applies, run) == "COMPLETED"
    result = (await read_execution(applies.services, OPERATOR, run)).step_results["work"]
    assert (result.attempts, result.output) == (1, OUTPUTS[about["language"]])


async def test_other_content_under_the_same_name_is_never_installed(
    applies: Node, database: str, tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hashes that were pinned hold on every node; after some tries the step fails. PK-9."""
    monkeypatch.setattr(retry, "MOST_TRIES", 2)
    run = await applies.start(step(JAVASCRIPT, retry={"attempts": 3}))
    shelf.npm.add("common", "1.0.0", {"index.js": "evil"})
    async with working(database, tmp_path / "b") as (folder, _), asyncio.timeout(LONG_S):
        assert await rests(applies, run) == "FAILED"
        assert os.listdir(folder) == []
    error = (await read_execution(applies.services, OPERATOR, run)).step_results["work"].error or ""
    assert "could not be started in 2 tries" in error
    assert "integrity" in error.lower()


def test_a_server_that_is_killed_while_it_installs_leaves_nothing_that_counts(
    tmp_path: Path, shelf: Shelf
) -> None:
    """What it had begun is no environment; the next server installs it from the beginning. PK-4."""
    with closing(Site(tmp_path / "data", {"WFCORE_WARM": "0"})) as site:
        ann = site.caller()
        flow = ann.workflow(FLOW)
        packages = tmp_path / "data" / "packages"
        shutil.rmtree(packages)
        shelf.npm.asked.clear()
        shelf.npm.open.clear()
        lost = ann.start(flow)
        until(lambda: shelf.npm.asked, LONG_S)
        site.kill()
        shelf.npm.open.set()
        assert not complete(packages)
        site.serve()
        again = ann.start(flow)
        until(lambda: ann.rested(again)["status"] == "COMPLETED", LONG_S)
        assert ann.rested(lost)["status"] in ("INTERRUPTED", "FAILED")
        assert len(complete(packages)) == 1
