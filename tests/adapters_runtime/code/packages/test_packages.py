"""Packages of steps: pip and npm as they are, a folder of wheels, a registry on this machine."""

import json
import os
import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from attrs import evolve

from adapters_runtime.code.languages import Interpreters
from adapters_runtime.code.packages.environments import PackageEnvironments
from adapters_runtime.code.packages.installers import Pip
from tests.support.package_index import Shelf, operator, registry, wheel
from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Language, Needs
from wfcore.ports.runtime import LanguageState


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
    assert environments.usage() == before


async def test_no_code_of_a_package_runs_while_it_is_installed(
    environments: PackageEnvironments, shelf: Shelf
) -> None:
    """A source archive is no wheel, and a script of npm is not run. PK-7."""
    with pytest.raises(PackagesUnavailable, match="source"):
        await environments.prepare(python("source==1.0"))
    await environments.prepare(javascript("common@1.0.0"))
    assert not shelf.built.exists()
    assert not (shelf.built.parent / "npm-ran-a-script").exists()


async def test_what_is_there_is_asked_for_no_more(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path
) -> None:
    """Once installed, nothing is fetched again, by whom ever. PK-4, PK-5."""
    needs = await environments.prepare(javascript("common@1.0.0"))
    asked = len(shelf.npm.asked)
    await environments.prepare(needs)
    again = PackageEnvironments(environments.root, operator(tmp_path))
    await again.prepare(needs)
    assert again.find(needs) == environments.find(needs)
    assert len(shelf.npm.asked) == asked


async def test_a_marker_that_does_not_hold_installs_nothing(
    environments: PackageEnvironments,
) -> None:
    """The environment is there and empty."""
    needs = python('nowhere==1.0 ; python_version < "3"')
    needs = await environments.prepare(needs)
    assert os.listdir(environments.find(needs) or "?") == []


async def test_a_missing_interpreter_is_told_with_its_cure(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Node there is no npm to ask: the language's own cure is told."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    nothing = {**shelf.environment, "PATH": "/nowhere"}
    with pytest.raises(PackagesUnavailable, match=r"\[node\]"):
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


async def test_the_pip_of_the_steps_serves_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server's own Python has no pip, that of the steps' says what is configured."""
    (tmp_path / "pip.conf").write_text("[global]\ntimeout = 61\n")
    pip = Pip({"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    state = LanguageState(Language.PYTHON, available=True, path=sys.executable)
    assert "61" in await pip._listed(state)


async def test_the_npm_of_the_wheel_serves_too(
    tmp_path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no npm is on PATH, the one that came with the Node from PyPI is used."""
    alone = {**shelf.environment, "PATH": "/bin-without-npm"}
    bare = PackageEnvironments(tmp_path, alone)
    needs = await bare.prepare(javascript("common@1.0.0"))
    assert bare.find(needs) is not None


async def test_the_lock_says_everything_with_its_hash(
    environments: PackageEnvironments, shelf: Shelf
) -> None:
    """What came along is in it; the same packages resolve to the same lock. PK-9."""
    needs = await environments.prepare(python("tiny==1.1"))
    known = json.loads(needs.lock or "")["packages"]
    wheels = {
        path.name.split("-py3")[0].replace("-", "=="): path for path in shelf.wheels.iterdir()
    }
    names = {"tiny==1.1", "other==2.0"}
    assert known == {name: sha256(wheels[name].read_bytes()).hexdigest() for name in names}
    assert (await environments.prepare(python("tiny==1.1"))).lock == needs.lock
    modern = await environments.prepare(javascript("@scope/modern@2.0.0"))
    locked = json.loads(modern.lock or "")["packages"]
    assert set(locked) == {"node_modules/@scope/modern", "node_modules/common"}
    assert all(entry["integrity"].startswith("sha512-") for entry in locked.values())
    assert shelf.npm.url not in (modern.lock or "")


@pytest.mark.parametrize("language", [Language.PYTHON, Language.JAVASCRIPT])
async def test_another_day_the_lock_gives_the_same(tmp_path: Path, language: Language) -> None:
    """
    What is released later changes nothing for whoever has the lock, on another machine either; an
    index that gives other content under the same name is refused. PK-9.
    """
    with registry() as npm:
        shelf = Shelf(tmp_path, npm)
        python_one, js_one = python("tiny==1.0"), javascript("@scope/modern@2.0.0")
        asked, came = (python_one, "other") if language is Language.PYTHON else (js_one, "common")
        needs = await PackageEnvironments(tmp_path / "one", shelf.environment).prepare(asked)
        wheel(shelf.wheels, "other", "2.1")
        npm.add("common", "1.1.0", {"index.js": "module.exports = {n: 7}"})
        two = PackageEnvironments(tmp_path / "two", shelf.environment)
        assert await two.prepare(needs) == needs
        assert versions(two, came) == {"other": ["2.0"], "common": ["1.0.0"]}[came]
        newer = await PackageEnvironments(tmp_path / "new", shelf.environment).prepare(asked)
        assert newer.lock != needs.lock
        wheel(shelf.wheels, "other", "2.0", "evil = True")
        npm.add("common", "1.0.0", {"index.js": "evil"})
        with pytest.raises(PackagesUnavailable, match=r"(?i)hash|integrity"):
            await PackageEnvironments(tmp_path / "three", shelf.environment).prepare(needs)


def versions(environments: PackageEnvironments, name: str) -> list[str]:
    """Of *name*, what is installed anywhere."""
    abouts = [json.loads(one.read_bytes()) for one in environments.root.glob("*/about.json")]
    found = [one for about in abouts for one in about["installed"]]
    return [re.split("==|@", one)[-1] for one in found if re.match(f"{name}(==|@)", one)]


async def test_a_lock_for_another_platform_is_made_anew(
    environments: PackageEnvironments,
) -> None:
    """Another minor version of Python or another processor needs other wheels. PK-9."""
    needs = await environments.prepare(python("tiny==1.0"))
    foreign = (needs.lock or "").replace("python 3.", "python 2.")
    assert foreign != needs.lock
    assert await environments.prepare(evolve(needs, lock=foreign)) == needs
