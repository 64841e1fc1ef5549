"""`wfcore simulate`: what it counts, what it says of a broken promise, and what it keeps."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.proofs.simulator import planted
from wfcore.installed import install

from .conftest import Call


def test_a_campaign_tells_what_it_did(call: Call) -> None:
    """Worlds, executions, faults by kind, virtual time, rate and rows; status 0."""
    said = call("simulate", "--worlds", "30", "--seed", "5", "--json")
    assert said.status == 0
    assert (said.json["worlds"], said.json["seed"], said.json["failures"]) == (30, 5, [])
    assert said.json["executions"] > 30
    assert said.json["virtualMs"] > 30_000
    assert said.json["executionsPerSecond"] > 0
    assert said.json["faults"]["crash"] > 0
    assert said.json["rows"]["execution: RUNNING Finished"] > 0


def test_text_says_the_same(call: Call) -> None:
    """A summary for people, and that all is well."""
    said = call("simulate", "--worlds", "20")
    assert said.status == 0
    assert "20 worlds from seed 1" in said.out
    assert "lose the answer" in said.out
    assert said.out.endswith("every promise was kept\n")


def test_a_broken_promise_is_shown_kept_and_replayed(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1, the seed, the trace of a small world, and a file that shows the same again."""
    planted.requeued_after_death(monkeypatch)
    said = call("simulate", "--worlds", "500", "--keep", str(tmp_path / "found"))
    assert said.status == 1
    (file,) = (tmp_path / "found").iterdir()
    seed = file.stem.removeprefix("world-")
    assert f"seed {seed}: started twice" in said.out
    assert f"wfcore simulate --replay {file}" in said.out
    again = call("simulate", "--replay", str(file), "--json")
    assert (again.status, str(again.json["seed"])) == (1, seed)
    assert again.json["broken"].startswith("started twice")
    assert again.json["trace"][-1] in said.out
    assert again.json["promise"]["id"] == "EX-3"
    assert f"the promise: EX-3: {again.json['promise']['sentence']}" in said.out
    monkeypatch.undo()
    calm = call("simulate", "--replay", str(file))
    assert calm.status == 0
    assert "every promise was kept" in calm.out


def test_several_failures_are_told_as_json(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--failures` goes on after the first; each has its seed, its promise and its trace."""
    planted.begun_is_not_recorded(monkeypatch)
    said = call("simulate", "--worlds", "100", "--failures", "2", "--json")
    assert said.status == 1
    first, second = said.json["failures"]
    assert first["seed"] < second["seed"]
    assert first["broken"].startswith("not recorded: ")
    assert "broken: not recorded" in first["trace"][-1]


def test_what_is_no_kept_world_is_refused(call: Call, tmp_path: Path) -> None:
    """A file of another kind is named, and nothing is played."""
    file = tmp_path / "other.json"
    for text in ("{", "[]", '{"seed": 1}', '{"acts": [[1]], "flows": [], "faults": {}}'):
        file.write_text(text)
        said = call("simulate", "--replay", str(file))
        assert said.status == 2 or said.status == 1
        assert "other.json" in said.err
        assert "no kept world" in said.err


BASE = """
import sys
class Base:
    allowed = {"wfcore", "wfserver", "attr", "attrs", "cattrs", "typing_extensions"}
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        ours = top in self.allowed or top.startswith(("adapters_", "_sysconfig"))
        if not ours and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Base())
from wfserver.__main__ import main
sys.argv = ["wfcore", *sys.argv[1:]]
main()
"""


def on_a_base_install(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", BASE, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_runs_on_a_base_install(tmp_path: Path) -> None:
    """With the core's own packages alone the command plays; other commands say what is missing."""
    said = on_a_base_install("simulate", "--worlds", "3", "--seed", "2")
    assert (said.returncode, said.stderr) == (0, "")
    assert "3 worlds from seed 2" in said.stdout
    assert said.stdout.endswith("every promise was kept\n")
    assert on_a_base_install("simulate", "--worlds", "none").returncode == 2
    (tmp_path / "other.json").write_text("{}")
    other = on_a_base_install("simulate", "--replay", str(tmp_path / "other.json"))
    assert other.returncode == 1
    assert "no kept world" in other.stderr
    assert install("server") in on_a_base_install("doctor").stderr
