"""`wfcore workflow validate`: definitions checked for a pull request."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from wfcore.rules.definition.check import definition_schema

from .conftest import STEP, Call
from .test_cli_workflows import MISTAKEN

SARIF = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text())
"""As published by OASIS and schemastore.org."""
for _part in ("run", "toolComponent"):
    # As published the pattern is no regular expression (a bracket too many); we name no language.
    del SARIF["definitions"][_part]["properties"]["language"]["pattern"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A good definition, a bad one, and no data folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(f"name: Greet\n{STEP}\n")
    (tmp_path / "a bad one.yaml").write_text(MISTAKEN)
    return tmp_path


def test_good_files_are_ok(call: Call, files: Path) -> None:
    """Exit status 0 and a line for each file; nothing is stored, no data folder is made."""
    said = call("workflow", "validate", "good.yaml", "good.yaml")
    assert (said.status, said.out) == (0, "good.yaml: ok\n" * 2)


def test_every_mistake_of_every_file_is_said(call: Call, files: Path) -> None:
    """Lines `file:line: path: message` on stdout, and exit status 1."""
    said = call("workflow", "validate", "a bad one.yaml", "good.yaml", "gone.yaml")
    assert said.status == 1
    lines = said.out.splitlines()
    assert lines[0].startswith("a bad one.yaml:3: steps[0].language: ")
    assert lines[3:] == ["good.yaml: ok", "gone.yaml: No such file or directory"]
    assert len(lines) == 5


def test_what_cannot_run_here_is_no_mistake(
    call: Call, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull request is checked on machines without the interpreters of its steps."""
    monkeypatch.setenv("PATH", "/nowhere")
    text = "name: Greet\nsteps:\n  - {name: a, kind: code, language: lua, source: x}\n"
    said = call("workflow", "validate", "-", stdin=text)
    assert (said.status, said.out) == (0, "stdin: ok\n")


def test_for_programs(call: Call, files: Path) -> None:
    """With `--json` one document: every file with its problems, their paths and lines."""
    said = call("workflow", "validate", "a bad one.yaml", "good.yaml", "--json")
    assert said.status == 1
    bad, good = said.json["files"]
    assert said.json["ok"] is False
    assert good == {"file": "good.yaml", "name": "Greet", "problems": []}
    places = {one["line"]: one["path"] for one in bad["problems"]}
    assert places == {3: "steps[0].language", 6: "steps[1].message", 7: "steps[1].timout"}


def test_for_code_hosts(call: Call, files: Path) -> None:
    """With `--sarif` one SARIF document that its schema accepts, with the place of each mistake."""
    said = call("workflow", "validate", "a bad one.yaml", "good.yaml", "gone.yaml", "--sarif")
    assert said.status == 1
    jsonschema_rs.validator_for(SARIF).validate(said.json)
    results = said.json["runs"][0]["results"]
    place = results[0]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "a%20bad%20one.yaml"},
        "region": {"startLine": 3},
    }
    assert results[0]["message"]["text"].startswith("steps[0].language: ")
    assert results[-1]["message"]["text"] == "No such file or directory"
    assert len(results) == 4


def test_without_findings_there_is_a_document_too(call: Call, files: Path) -> None:
    """Code hosts close what an upload without results no longer names."""
    said = call("workflow", "validate", "good.yaml", "--sarif")
    assert said.status == 0
    jsonschema_rs.validator_for(SARIF).validate(said.json)
    assert said.json["runs"][0]["results"] == []


def test_one_document_at_a_time(call: Call, files: Path) -> None:
    """`--json` and `--sarif` together are a usage error."""
    assert call("workflow", "validate", "good.yaml", "--json", "--sarif").status == 2


def test_the_schema_is_printed(call: Call) -> None:
    """`wfcore workflow schema` gives what a server serves."""
    assert call("workflow", "schema").json == json.loads(json.dumps(definition_schema()))


def test_scenarios_are_checked_as_such(call: Call, files: Path) -> None:
    """`validate workflows/*.yaml` may find tests of definitions among them."""
    scenarios = "definition: good.yaml\nscenarios: [{name: s, expect: {status: FAILED}}]\n"
    (files / "good.test.yaml").write_text(scenarios)
    assert call("workflow", "validate", "good.test.yaml").status == 0
    (files / "good.test.yaml").write_text(scenarios.replace("FAILED", "BROKEN"))
    said = call("workflow", "validate", "good.test.yaml")
    assert said.status == 1
    assert said.out.startswith("good.test.yaml:2: scenarios[0].expect.status: unknown value")
