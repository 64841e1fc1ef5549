"""Packages of steps from the command line: applied, run, refused in the installer's words."""

import os
from pathlib import Path

import pytest

from tests.support.package_index import operator, wheel

from .conftest import Call

TINY = """\
name: Tiny
steps:
  - name: work
    kind: code
    language: python
    requirements:
      - tiny=={version}
    source: |
      import tiny
      print("tiny " + tiny.__version__)
"""


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pip that knows one package; nothing of this user's caches."""
    wheels = tmp_path / "wheels"
    wheel(wheels, "tiny", "1.0")
    for name, value in operator(tmp_path / "home", wheels).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return wheels


def test_a_run_brings_its_packages(call: Call, tmp_path: Path, shelf: Path) -> None:
    """`run` installs them once, among the user's caches where there is no data folder. PK-3."""
    elsewhere = ("--data", str(tmp_path / "none"), "run", "-")
    said = call(*elsewhere, "--json", stdin=TINY.format(version="1.0"))
    assert (said.status, said.json["output"]) == (0, "tiny 1.0")
    (kept,) = (tmp_path / "caches" / "wfcore" / "packages").iterdir()
    (shelf / "tiny-1.0-py3-none-any.whl").unlink()
    again = call(*elsewhere, stdin=TINY.format(version="1.0"))
    assert (again.status, again.out) == (0, "tiny 1.0\n")
    assert "installing the packages" in again.err
    assert kept.exists()
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", ["apply", "run"])
def test_a_failure_names_file_line_and_field(wfcore: Call, command: str) -> None:
    """What pip says is an error of the definition, at its place; nothing is stored. PK-3."""
    text = TINY.format(version="9.9")
    calls = {
        "apply": ("workflow", "apply", "-", "--owner", "ann@example.org"),
        "run": ("run", "-"),
    }
    said = wfcore(*calls[command], stdin=text)
    assert said.status == 1
    *_, told = said.err.splitlines()
    assert told.startswith("error: stdin:6: steps[0].requirements: pip could not install them: ")
    assert "No matching distribution found for tiny==9.9" in told
    assert wfcore("workflow", "list", "--json").json["total"] == 0


def test_doctor_tells_what_is_kept(wfcore: Call, data: Path) -> None:
    """The installers with their versions, how many environments, how much room. PK-6."""
    wfcore("workflow", "apply", "-", "--owner", "ann@example.org", stdin=TINY.format(version="1.0"))
    said = wfcore("doctor", "--json").json
    check = next(one for one in said["checks"] if one["name"] == "packages")
    assert check["ok"]
    assert check["detail"].startswith("pip ")
    assert "npm " in check["detail"]
    assert check["detail"].endswith("; 1 cached, 0.0 MiB")
    assert len(list((data / "packages").iterdir())) == 1


def test_packages_may_be_kept_elsewhere(
    wfcore: Call, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`WFCORE_PACKAGES` names the folder; a run that shares it removes nothing. PK-6."""
    monkeypatch.setenv("WFCORE_PACKAGES", str(tmp_path / "kept"))
    apply = ("workflow", "apply", "-", "--owner", "ann@example.org")
    assert wfcore(*apply, stdin=TINY.format(version="1.0")).status == 0
    (about,) = (tmp_path / "kept").glob("*/about.json")
    os.utime(about, (0, 0))
    other = "name: Other\nsteps:\n  - {name: a, kind: code, language: bash, source: echo}\n"
    assert wfcore("run", "-", stdin=other).status == 0
    assert about.exists()
    assert not (data / "packages").exists()


def test_the_switch_for_builds_is_read(wfcore: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything but 0 and 1 is refused by name. PK-7."""
    monkeypatch.setenv("WFCORE_BUILD_PACKAGES", "yes")
    said = wfcore("account", "list")
    assert (said.status, said.err) == (2, "error: WFCORE_BUILD_PACKAGES: must be 0 or 1\n")
