"""What is released: built twice it is the same, and a list says what an installation is made of."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IGNORED = shutil.ignore_patterns("__pycache__", "_build", "reference", ".*")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
KEPT = [*PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"], "pyproject.toml"]


def build(folder: Path, age_s: int) -> dict[str, Path]:
    """Wheel and sdist, by ending, of a copy in *folder* whose files are *age_s* old."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name in KEPT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=IGNORED)
        else:
            shutil.copy(ROOT / name, tree / name)
    for path in tree.rglob("*"):
        os.utime(path, (1_700_000_000 - age_s, 1_700_000_000 - age_s))
        path.chmod(path.stat().st_mode & ~(0o077 if age_s else 0))
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", tree)
    environment = {**os.environ, "TZ": "Asia/Tokyo" if age_s else "UTC"}
    environment.pop("SOURCE_DATE_EPOCH", None)
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return {path.name.rpartition(".")[2]: path for path in (folder / "dist").iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], dict[str, Path]]:
    folder = tmp_path_factory.mktemp("release")
    return build(folder / "here", 0), build(folder / "elsewhere" / "later", 86_400 * 400)


@pytest.mark.parametrize("kind", ["whl", "gz"])
def test_built_twice_it_is_the_same(
    kind: str, built: tuple[dict[str, Path], dict[str, Path]]
) -> None:
    """In another folder, time zone and year, with other modes of files: the same bytes."""
    first, second = (hashlib.sha256(one[kind].read_bytes()).hexdigest() for one in built)
    assert first == second


def test_a_wheel_holds_the_packages_alone(
    built: tuple[dict[str, Path], dict[str, Path]],
) -> None:
    """What is installed is our packages and what describes them: no tests, no docs."""
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    wanted = {Path(one).name for one in packages}
    with zipfile.ZipFile(built[0]["whl"]) as wheel:
        found = {name.partition("/")[0] for name in wheel.namelist()}
    assert {name for name in found if not name.endswith(".dist-info")} == wanted


def test_the_list_of_components_is_that_of_the_server(tmp_path: Path) -> None:
    """The CycloneDX document names each locked library, with version and hashes."""
    command = (
        *("cyclonedx-py", "requirements", ROOT / "requirements" / "server.txt"),
        *("--pyproject", ROOT / "pyproject.toml", "--mc-type", "application"),
        *("--output-reproducible", "--output-file", tmp_path / "sbom.json"),
    )
    binary = Path(sys.executable).with_name("cyclonedx-py")
    subprocess.run((binary, *command[1:]), check=True, capture_output=True)
    document = json.loads((tmp_path / "sbom.json").read_text())
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "wfcore"
    found = {one["name"]: one for one in document["components"]}
    assert {"attrs", "cattrs", "starlette", "uvicorn", "aiosqlite"} <= set(found)
    locked = (ROOT / "requirements" / "server.txt").read_text()
    assert all(f"{name}=={one['version']}" in locked for name, one in found.items())
    hashes = found["attrs"]["externalReferences"][0]["hashes"]
    assert all(one["content"] in locked for one in hashes)
