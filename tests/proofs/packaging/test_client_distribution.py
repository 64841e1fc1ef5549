"""The distribution `wfcore-client`: built from this tree, and enough by itself."""

import asyncio
import hashlib
import re
import shutil
import subprocess
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from adapters_http.config import HttpConfig
from tests.support.http_world import a_world
from tests.support.wheels import PROJECT, ROOT, brought, install, metadata, required

OURS = ROOT / "src" / "wfcore_client"
GENERATED = ("backoff.py", "shapes.py", "synchronous.py")
PROGRAM = """
import sys
from wfcore_client import Client, verify_callback
url, key, approval = sys.argv[1:]
with Client(url, key) as wf:
    seen = wf.approval(approval)
    print(wf.approve(seen).status, wf.execution(seen.execution_id).status)
print(*sorted({"wfcore", "attr", "attrs", "cattrs"} & set(sys.modules)), "nothing else")
"""


@pytest.fixture
def python(client_wheel: Path, tmp_path: Path) -> Path:
    """An environment with the wheel, httpx2 and what that needs: nothing else."""
    needed = required(client_wheel)
    assert "httpx2" in needed
    assert not needed & {"attrs", "cattrs", "wfcore"}
    return install(tmp_path / "venv", [client_wheel], needed)


def test_no_package_is_in_both_distributions(client_wheel: Path) -> None:
    """Removing one of `wfcore` and `wfcore-client` takes nothing that the other one needs."""
    others = {
        Path(one).name for one in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    }
    with zipfile.ZipFile(client_wheel) as built:
        packages = {name.partition("/")[0] for name in built.namelist()}
    assert packages & others == set()
    assert "wfcore_client" in packages


def test_it_is_the_package_of_this_tree(client_wheel: Path) -> None:
    """Every file of `src/wfcore_client`, byte for byte, and no other."""
    found = contents(client_wheel).items()
    assert {name: digest for name, digest in found if name.endswith((".py", "py.typed"))} == {
        f"wfcore_client/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in OURS.iterdir()
        if path.suffix in (".py", ".typed")
    }


def test_a_fresh_checkout_builds_it(client_wheel: Path, tmp_path: Path) -> None:
    """Without generated files, and with the libraries of the build alone, the wheel is the same."""
    tree = tmp_path / "checkout"
    shutil.copytree(ROOT / "client", tree / "client", ignore=shutil.ignore_patterns(".*"))
    for folder in ("src", "tools"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__py*"))
    for name in GENERATED:
        (tree / "src" / "wfcore_client" / name).unlink()
    shutil.copy(ROOT / "LICENSE", tree)
    requires = tomllib.loads((tree / "client" / "pyproject.toml").read_text())["build-system"]
    alone = install(tmp_path / "venv", [], brought(requires["requires"]))
    command = (alone, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist")
    run = subprocess.run(command, cwd=tree / "client", capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (wheel,) = (tmp_path / "dist").iterdir()
    assert contents(wheel) == contents(client_wheel)


def contents(wheel: Path) -> dict[str, str]:
    """The SHA-256 of each member of *wheel*."""
    with zipfile.ZipFile(wheel) as built:
        return {name: hashlib.sha256(built.read(name)).hexdigest() for name in built.namelist()}


def test_it_says_what_it_needs(client_wheel: Path) -> None:
    """httpx2 alone, and the version of the server that it was built with."""
    lines = metadata(client_wheel).decode().splitlines()
    assert [line for line in lines if line.startswith("Requires-Dist")] == [
        "Requires-Dist: httpx2<3,>=2.0"
    ]
    assert f"Version: {distribution('wfcore').version}" in lines


def test_its_metadata_is_complete(client_wheel: Path) -> None:
    """An index shows for whom it is, which Pythons, how mature, which license; no link is dead."""
    found = Metadata.from_email(metadata(client_wheel), validate=True)
    tellings = {one.partition(" :: ")[0] for one in found.classifiers or ()}
    assert tellings >= {"Development Status", "Intended Audience", "Topic", "Typing"}
    pythons = {f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)}
    assert pythons <= set(found.classifiers or ())
    assert {"workflow", "approval"} <= set(found.keywords or ())
    assert found.license_expression == "MIT"
    assert re.findall(r"\]\((?!https?:)[^)]*\)", found.description or "") == []


async def test_it_decides_an_approval_from_a_fresh_environment(
    python: Path, tmp_path: Path
) -> None:
    """Where neither wfcore nor attrs is installed, the client reads and decides."""
    async with a_world(tmp_path, HttpConfig()) as world:
        _, approval = await world.paused()
        command = (str(python), "-I", "-c", PROGRAM, world.url, world.key.text, approval)
        run = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
        out, err = await run.communicate()
    assert out.decode().splitlines() == ["APPROVED RUNNING", "nothing else"], err.decode()
