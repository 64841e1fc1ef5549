"""`wfcore test`, and the plugin of pytest: scenarios of definitions, as a build runs them."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from wfcore.scenarios.document import scenarios_schema

from .conftest import Call

EXAMPLES = Path(__file__).parents[2] / "examples" / "workflows"
FLOW = "name: W\nsteps:\n  - {name: a, kind: code, language: lua, source: x}\n"
SCENARIOS = """\
definition: flow.yaml
steps: {a: {output: 1}}
scenarios:
  - name: good
    expect: {output: 1}
  - name: bad <&>
    expect: {output: 2}
"""


@pytest.fixture
def folder(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A definition and its scenarios below a folder `flows`."""
    flows = tmp_path / "flows" / "deep"
    flows.mkdir(parents=True)
    (flows / "flow.yaml").write_text(FLOW)
    (flows / "flow.test.yaml").write_text(SCENARIOS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_are_as_expected(call: Call) -> None:
    """Exit status 0 and one line; no server and no data folder are needed."""
    said = call("test", str(EXAMPLES))
    assert said.status == 0, said.out
    assert said.out.endswith("all as expected\n")
    assert said.err == ""


def test_what_differs_is_told_with_its_line(call: Call, folder: Path) -> None:
    """Exit status 1, the line of the scenario, and what was expected and what was."""
    said = call("test", "flows")
    assert said.status == 1
    assert said.out.splitlines()[:2] == [
        "flows/deep/flow.test.yaml:6: bad <&>",
        "  output: expected 2, was 1",
    ]
    assert said.out.endswith("1 not as expected\n")


def test_some_can_be_chosen(call: Call, folder: Path) -> None:
    """`--only` plays scenarios by a part of their name."""
    said = call("test", "flows/deep/flow.test.yaml", "--only", "good")
    assert said.status == 0
    assert said.out.startswith("1 scenario in ")


def test_for_build_servers(call: Call, folder: Path) -> None:
    """JUnit XML counts what failed, and names file and line."""
    assert call("test", "flows", "--junit", "out.xml").status == 1
    (suite,) = ElementTree.parse("out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    good, bad = suite
    assert (good.get("name"), len(good)) == ("good", 0)
    assert (bad.get("name"), bad.get("line")) == ("bad <&>", "6")
    assert bad[0].text == "output: expected 2, was 1"


def test_for_programs(call: Call, folder: Path) -> None:
    """`--json` is one document of all files and scenarios."""
    said = call("test", "flows", "--json")
    assert (said.status, said.json["ok"]) == (1, False)
    assert said.json["files"] == [
        {
            "file": "flows/deep/flow.test.yaml",
            "scenarios": [
                {"name": "good", "line": 4, "ok": True, "wrong": []},
                {"name": "bad <&>", "line": 6, "ok": False, "wrong": ["output: expected 2, was 1"]},
            ],
        }
    ]


def test_a_file_with_mistakes(call: Call, folder: Path) -> None:
    """Mistakes are lines `file:line: path: message` on stderr, as of definitions."""
    file = folder / "flows" / "deep" / "flow.test.yaml"
    file.write_text(SCENARIOS.replace("output: 2", "outpt: 2"))
    said = call("test", "flows")
    assert said.status == 1
    assert said.err.startswith("error: flows/deep/flow.test.yaml:7: scenarios[1].expect.outpt: ")


def test_a_folder_without_scenarios(call: Call, folder: Path) -> None:
    """Nothing to play is a mistake of the call, not a success."""
    (folder / "flows" / "deep" / "flow.test.yaml").unlink()
    said = call("test", "flows")
    assert said.status == 1
    assert "there are no files *.test.yaml" in said.err


def test_the_schema_is_printed(call: Call) -> None:
    """For editors: the schema of these files, without naming one."""
    assert json.loads(call("test", "--schema").out) == json.loads(json.dumps(scenarios_schema()))


def pytest_there(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest as a process of its own, which finds the plugin by itself."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


BASE = """
import sys

class Base:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("click", "yaml"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Base())
"""
"""A plugin that makes an installation look as the base alone does."""


def test_scenarios_without_the_server_say_what_to_install(folder: Path) -> None:
    """On a base install the option ends pytest with one line: the extra and the command."""
    (folder / "base.py").write_text(BASE)
    ended = pytest_there(folder, "-p", "base", "--wfcore", "flows")
    lines = [line for line in (ended.stdout + ended.stderr).splitlines() if line]
    assert ended.returncode == 4, lines
    assert lines[-1].startswith("ERROR: pytest --wfcore needs the extra server"), lines
    assert "pip install" in lines[-1]
    assert "Traceback" not in ended.stderr


def test_scenarios_are_tests_of_pytest(folder: Path) -> None:
    """Beside the other tests: names, failures with what differs, places, and no traceback."""
    (folder / "test_other.py").write_text("def test_other():\n    pass\n")
    said = pytest_there(folder, "--wfcore", "flows")
    assert said.returncode == 1, said.stderr
    assert "1 failed, 2 passed" in said.stdout
    assert "output: expected 2, was 1" in said.stdout
    assert "Traceback" not in said.stdout
    assert "bad <&>" in said.stdout


def test_scenarios_in_a_folder_that_pytest_passes_over(folder: Path) -> None:
    """A path that was asked for is collected though other tests are not looked for there."""
    (folder / "flows").rename(folder / "build")
    said = pytest_there(folder, "--wfcore", "build/deep")
    assert "1 failed, 1 passed" in said.stdout


def test_without_the_option_nothing_is_collected(folder: Path) -> None:
    """A project that has wfcore installed sees nothing of the plugin."""
    said = pytest_there(folder)
    assert "no tests ran" in said.stdout


def test_pytest_names_the_mistakes_of_a_file(folder: Path) -> None:
    """A bad file is an error of collection that says what is wrong, without a traceback."""
    file = folder / "flows" / "deep" / "flow.test.yaml"
    file.write_text("scenarios: []\n")
    said = pytest_there(folder, "--wfcore", "flows")
    assert said.returncode == 2
    assert "flow.test.yaml:1: definition: is required" in said.stdout
    assert "Traceback" not in said.stdout
    assert pytest_there(folder, "--wfcore", "nowhere").returncode == 4


def test_the_examples_are_applied_with_their_tests(wfcore: Call) -> None:
    """A folder holds definitions and scenarios; these are played, and are no definitions."""
    people = ("ann@example.org", "bob@example.org", "cyd@example.org")
    assert wfcore("group", "create", "refunds", *people).status == 0  # the group of an example
    said = wfcore("workflow", "apply", str(EXAMPLES), "--owner", "ann@example.org", "--json")
    assert said.status == 0, said.err
    files = {one.name for one in EXAMPLES.glob("*.yaml") if ".test." not in one.name}
    assert len(said.json["items"]) == len(files)


def test_what_fails_its_tests_is_not_applied(wfcore: Call, folder: Path) -> None:
    """The scenario is shown and nothing is stored, of a folder or of a file, unless --no-test."""
    deep = folder / "flows" / "deep"
    apply = ("workflow", "apply", "--owner", "ann@example.org", "--json")
    for target in (deep, deep / "flow.yaml"):
        said = wfcore(*apply, str(target))
        assert said.status == 1
        assert f"{deep}/flow.test.yaml:6: bad <&>\nerror:   output: expected 2, was 1" in said.err
        assert wfcore("workflow", "list", "--json").json["items"] == []
    assert wfcore(*apply, str(deep), "--no-test").status == 0
    (deep / "flow.test.yaml").write_text(SCENARIOS.replace("output: 2", "output: 1"))
    assert wfcore(*apply, str(deep / "flow.yaml")).status == 0
