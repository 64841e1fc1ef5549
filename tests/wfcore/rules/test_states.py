"""The tables of states as people and programs read them: nothing missing, nothing stale."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from adapters_http.config import HttpConfig
from adapters_http.openapi.document import document
from wfcore.machine import Machine
from wfcore.rules.states import MACHINES, as_json, as_mermaid, as_text, meaning, sentence
from wfserver.cli import main

DOCS = Path(__file__).parents[3] / "docs"
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda m: m.name)
ARROW = re.compile(r"^    (\S+) --> (\S+?)(?:: (\S+))?$")


def triples(machine: Machine) -> set:
    return {(str(row.state), row.fact.__name__, str(row.target)) for row in machine.rows}


@every_machine
def test_the_text_has_a_line_for_each_row(machine):
    """State, fact, target, rule and meaning of every row, each row once, under their heads."""
    head, between, heads, *lines = as_text(machine).splitlines()
    assert between == ""
    assert head.startswith(f"{machine.name}: {machine.initial} at first")
    assert heads.split() == ["From", "Fact", "To", "Rule", "When"]
    said = [tuple(re.split(r"  +", line)) for line in lines]
    assert said == [
        (str(row.state), row.fact.__name__, str(row.target), row.rule, meaning(row.fact))
        for row in machine.rows
    ]


def test_a_sentence_tells_where_a_record_goes():
    """One state or several, with an end or without."""
    assert sentence(MACHINES["webhook"]) == "ACTIVE at first; then DISABLED"
    ends = "APPROVED, REJECTED, REVISED or CANCELLED"
    assert sentence(MACHINES["approval"]) == f"PENDING at first; {ends} for good"


@every_machine
def test_the_diagram_draws_exactly_the_rows(machine):
    """Read back, its arrows are the rows, the beginning and the ends; no arrow is drawn twice."""
    first, *lines = as_mermaid(machine).splitlines()
    assert first == "stateDiagram-v2"
    arrows = [ARROW.fullmatch(line).groups() for line in lines]
    assert len({(here, there) for here, there, _ in arrows}) == len(arrows)
    drawn = {
        (here, fact, there)
        for here, there, facts in arrows
        if facts is not None
        for fact in facts.split("<br>")
    }
    assert drawn == triples(machine)
    bare = {(here, there) for here, there, facts in arrows if facts is None}
    assert bare == {("[*]", machine.initial)} | {(end, "[*]") for end in machine.final}


@every_machine
def test_the_json_holds_the_whole_table(machine):
    """States, ends and rows survive JSON."""
    said = json.loads(json.dumps(as_json(machine)))
    assert {(row["from"], row["fact"], row["to"]) for row in said["rows"]} == triples(machine)
    assert said["states"] == [str(state) for state in machine.states]
    assert (said["initial"], set(said["final"])) == (machine.initial, machine.final)
    assert [row["rule"] for row in said["rows"]] == [row.rule for row in machine.rows]
    assert [row["when"] for row in said["rows"]] == [meaning(row.fact) for row in machine.rows]
    assert {key for row in said["rows"] for key in row} == {"from", "fact", "to", "rule", "when"}
    assert set(said) == {"name", "initial", "final", "states", "rows"}
    assert said["name"] == machine.name


@every_machine
def test_every_fact_says_what_it_means(machine):
    """A row that nobody could explain is not in a table."""
    assert all(meaning(fact).endswith(".") for fact in machine.facts)


def test_a_fact_s_meaning_is_its_first_paragraph():
    """In one line and without quotes; a fact without words has no meaning."""

    class Told:
        """
        Somebody
        told `it`.

        At length.
        """

    class Untold:
        pass

    assert (meaning(Told), meaning(Untold)) == ("Somebody told it.", "")


def test_the_page_shows_the_tables_of_today():
    """`make tables` would change nothing, and every machine is shown as table and picture."""
    run = subprocess.run(
        [sys.executable, str(DOCS / "fill.py"), "--check"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    page = (DOCS / "states.md").read_text()
    for name in MACHINES:
        assert f"<!-- states of {name} -->" in page
        assert f"(pictures/{name}.svg)" in page


def test_the_command_prints_every_form(capsys):
    """`wfcore states` needs no data folder and prints text, diagram and JSON."""
    for name, machine in MACHINES.items():
        for form, said in (("text", as_text(machine)), ("mermaid", as_mermaid(machine))):
            assert main(["states", name, "--format", form]) == 0
            assert capsys.readouterr().out == f"{said}\n"
        for asked in (["--json"], ["--format", "json"]):
            assert main(["states", name, *asked]) == 0
            assert json.loads(capsys.readouterr().out) == as_json(machine)
    assert main(["states", "nothing"]) == 2
    assert "execution" in capsys.readouterr().err


def test_the_description_of_the_api_enumerates_the_states():
    """Wherever OpenAPI speaks of such a status, it lists the table's states and says the ends."""
    schemas = document(HttpConfig())["components"]["schemas"]
    shown = {"execution": "StatusView", "approval": "ApprovalView", "webhook": "WebhookView"}
    for name, view in shown.items():
        status = schemas[schemas[view]["properties"]["status"]["$ref"].rpartition("/")[2]]
        assert status["enum"] == [str(state) for state in MACHINES[name].states]
        assert all(str(state) in status["description"] for state in MACHINES[name].states)
