"""`wfcore simulate`: what it counts, what it says of a broken promise, and what it keeps."""

from pathlib import Path

import pytest

from simulator import planted

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
    assert "\n".join(again.json["trace"][-5:]) in said.out
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
