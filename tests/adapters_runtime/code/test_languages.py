"""Interpreters are found once, for real, and what is missing says what to install."""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adapters_runtime.code import languages
from adapters_runtime.code.languages import LANGUAGES, Interpreters
from wfcore.installed import install
from wfcore.model.work import SCRIPTS
from wfcore.model.workflow import Language, Runtime
from wfcore.testing.contracts.steps import alive


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def found() -> Interpreters:
    return Interpreters(os.environ["PATH"])


def test_all_states(found: Interpreters) -> None:
    """Every language has a state: a version and a real path, or a cure."""
    states = found.states()
    assert set(states) == set(Language)
    for state in states.values():
        if state.language is not Language.COMMAND and state.available:
            assert state.version
            assert state.path
            assert os.access(state.path, os.X_OK)
        assert state.available or state.cure


def test_nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an empty PATH all but Python, commands and a packaged Node are missing, with cures."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    states = Interpreters("/nonexistent").states()
    able = {language for language, state in states.items() if state.available}
    assert able == {Language.PYTHON, Language.COMMAND}
    assert "ruby" in (states[Language.RUBY].cure or "")
    assert "lua5.4" in (states[Language.LUA].cure or "")
    assert "22.18" in (states[Language.TYPESCRIPT].cure or "")
    for language in (Language.JAVASCRIPT, Language.TYPESCRIPT):
        assert install("node") in (states[language].cure or "")


def test_the_newest_node_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever on PATH it stands; of two that are equal, the first."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    folders = [tmp_path / name for name in ("old", "new", "same")]
    for folder, version in zip(folders, ("20.20.2", "24.9.0", "24.9.0"), strict=True):
        folder.mkdir()
        _script(folder / "node", f"printf '{version}\t{folder}/node'")
    found = Interpreters(":".join(map(str, folders)))
    for language in SCRIPTS:
        state = found.find(language)
        assert (state.version, state.path) == ("24.9.0", str(tmp_path / "new" / "node"))


def test_a_program_with_two_names_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where /bin is a link to /usr/bin, and `nodejs` one to `node`."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    _script(tmp_path / "node", f"echo >>{tmp_path}/asked; printf '24.1.0\t{tmp_path}/node'")
    (tmp_path / "nodejs").symlink_to("node")
    assert Interpreters(str(tmp_path)).find(Language.JAVASCRIPT).available
    assert (tmp_path / "asked").read_text() == "\n"


def test_runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step does not name is decided by the setting; each state tells what may be named."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    _script(tmp_path / "bun", f"printf '1.4.4\t{tmp_path}/bun'")
    on_node = Interpreters(str(tmp_path))
    on_bun = Interpreters(str(tmp_path), javascript=Runtime.BUN)
    for language in SCRIPTS:
        for found in (on_node, on_bun):
            assert found.find(language, Runtime.BUN).version == "1.4.4"
            assert not found.find(language, Runtime.NODE).available
            assert found.states()[language].runtimes == (Runtime.BUN,)
        assert not on_node.find(language).available
        assert on_bun.find(language).available
    assert on_node.runtimes()[Runtime.BUN].available
    (tmp_path / "bun").unlink()
    assert "npm install -g bun" in (on_bun.find(Language.JAVASCRIPT).cure or "")


def test_shims(tmp_path: Path) -> None:
    """A version manager's shim is resolved to what it runs."""
    _script(tmp_path / "bash", 'exec /bin/bash "$@"')
    state = Interpreters(str(tmp_path)).find(Language.BASH)
    assert state.available
    assert state.path != str(tmp_path / "bash")
    assert os.path.realpath(state.path or "") == os.path.realpath("/bin/bash")


@pytest.mark.parametrize(
    "text", ["exit 1", "echo", "sleep 600", "echo '1.0\t/bin/true'"], ids=str.split
)
def test_unfit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A program that fails, says nothing, hangs or is too old does not count."""
    monkeypatch.setattr(languages, "_PROBE_S", 0.5)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    _script(tmp_path / "node", text)
    path = f"{tmp_path}:/usr/bin:/bin"
    monkeypatch.setattr("shutil.which", lambda name, path: str(tmp_path / "node"))
    assert not Interpreters(path).find(Language.JAVASCRIPT).available
    deadline = time.monotonic() + 60
    while alive(str(tmp_path)):  # killed, but nobody of ours waits for its children
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_asked_once(found: Interpreters, monkeypatch: pytest.MonkeyPatch) -> None:
    """A found interpreter is not asked again while it is there."""
    first = found.find(Language.BASH)
    monkeypatch.setattr(languages, "_probe", None)
    assert found.find(Language.BASH) is first


def test_installed_later(tmp_path: Path) -> None:
    """What was missing is found once it is installed; what was removed is missing again."""
    interpreters = Interpreters(str(tmp_path))
    assert not interpreters.find(Language.RUBY).available
    _script(tmp_path / "ruby", f"printf '3.1.2\t{tmp_path}/ruby'")
    assert interpreters.find(Language.RUBY).available
    (tmp_path / "ruby").unlink()
    assert not interpreters.find(Language.RUBY).available


@pytest.mark.parametrize(
    ("version", "fits"),
    [("18.19.0", False), ("20.20.2", False), ("22.17.9", False), ("22.18.0", True),
     ("23.5.0", False), ("23.6.0", True), ("24.1.0", True)],
)  # fmt: skip
def test_typescript_versions(version: str, fits: bool) -> None:
    """TypeScript needs a Node that strips types without being asked."""
    numbers = languages._numbers(version)
    assert LANGUAGES[Language.TYPESCRIPT].fits(numbers) is fits


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("5.2.15(1)-release", (5, 2)), ("3.13.0rc1", (3, 13)), ("5.4", (5, 4)), ("x", ())],
)
def test_versions(version: str, numbers: tuple[int, ...]) -> None:
    """Of a version the leading numbers count."""
    assert languages._numbers(version) == numbers


def test_only_a_step_with_packages_sees_them(tmp_path: Path) -> None:
    """Python looks into the folders that it is told in its environment only for such a step."""
    (tmp_path / "brought.py").touch()
    (tmp_path / "step").mkdir()
    recipe = LANGUAGES[Language.PYTHON]
    (tmp_path / "step" / recipe.file).write_text("import brought")
    for modules in (True, False):
        step = recipe.arguments(str(tmp_path / "step"), platform.python_version(), False, modules)
        brought = {"PYTHONPATH": str(tmp_path)}
        ran = subprocess.run(
            [sys.executable, *step], env=brought, stderr=subprocess.DEVNULL, check=False
        )
        assert (ran.returncode == 0) is modules
