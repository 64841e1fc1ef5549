"""The audit log's checks and evidence from the command line, without a server."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from wfcore.rules.audit.evidence import proved

from .conftest import Call, program


@pytest.fixture
def started(wfcore: Call, applied: str) -> str:
    """The id of an execution that was started by hand."""
    return str(wfcore("execution", "start", applied, "--json").json["executionId"])


def change(data: Path, sql: str) -> None:
    """Do what nobody should do to the database."""
    with closing(sqlite3.connect(data / "wfcore.db")) as database, database:
        assert database.execute(sql).rowcount


def test_a_log_that_fits_is_verified(wfcore: Call, applied: str) -> None:
    """AL-2: status 0, and how far it was read."""
    said = wfcore("audit", "verify", "--json")
    assert (said.status, said.json["ok"], said.json["fault"]) == (0, True, None)
    last = said.json["last"]
    assert (said.json["first"], last) == (1, wfcore("audit", "--json").json["total"])
    assert wfcore("audit", "verify").out == f"{last} entries fit; the last is {last}\n"


def test_the_first_entry_that_does_not_fit_is_named(wfcore: Call, applied: str, data: Path) -> None:
    """AL-2: status 1, number and id, and what is wrong with it."""
    entries = wfcore("audit", "--json").json["items"]
    change(data, "UPDATE audit SET body = replace(body, 'workflow', 'Workflow')")
    wrong = next(n for n, one in enumerate(entries, 1) if one["event"] == "workflow.apply")
    said = wfcore("audit", "verify", "--json")
    assert (said.status, said.json["ok"]) == (1, False)
    fault = said.json["fault"]
    assert (fault["number"], fault["id"]) == (wrong, entries[wrong - 1]["id"])
    assert "it was changed, inserted or moved" in fault["why"]
    plain = wfcore("audit", "verify")
    assert (plain.status, plain.out.startswith(f"DOES NOT FIT: entry {wrong} (")) == (1, True)


def test_an_anchor_shows_that_the_end_is_missing(wfcore: Call, applied: str, data: Path) -> None:
    """AL-4: also when the log's own note of its end was made to fit."""
    file = data.parent / "anchor.json"
    file.write_text(wfcore("audit", "anchor").out)
    assert wfcore("audit", "verify", "--anchor", str(file)).status == 0
    change(data, "DELETE FROM audit WHERE number = (SELECT max(number) FROM audit)")
    change(
        data,
        "UPDATE audit_chain SET (end_number, end_hash) ="
        " (SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1)",
    )
    assert wfcore("audit", "verify").status == 0
    said = wfcore("audit", "verify", "--anchor", str(file))
    assert said.status == 1
    assert "was removed" in said.out


def test_another_file_is_no_anchor(wfcore: Call, data: Path) -> None:
    """The answer says which command writes one."""
    said = wfcore("audit", "verify", "--anchor", str(data / "wfcore.db"))
    assert said.status == 1
    assert "--anchor: the file is no anchor" in said.err


def test_evidence_is_written_once_and_verified_anywhere(
    wfcore: Call, call: Call, started: str, tmp_path: Path
) -> None:
    """AL-6: a private new file; verified without the data folder, in a process of its own."""
    file, anchor = tmp_path / "evidence.json", tmp_path / "anchor.json"
    anchor.write_text(wfcore("audit", "anchor").out)
    said = wfcore("evidence", started, "--output", str(file), "--anchor", str(anchor), "--json")
    assert (said.status, said.json["file"]) == (0, str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    again = wfcore("evidence", started, "--output", str(file))
    assert (again.status, "exists already" in again.err) == (1, True)
    events = [one["event"] for one in wfcore("audit", "--json").json["items"]]
    assert events.count("evidence.write") == 1
    elsewhere = ("evidence", "verify", str(file), "--anchor", str(anchor))
    fits, *shown = program("--data", str(tmp_path / "none"), *elsewhere).out.splitlines()
    assert fits == f"{started}: everything fits"
    assert shown == [*proved(anchored=True, known=False)]
    sure = call(*elsewhere, "--sha256", said.json["sha256"], "--json").json
    assert (sure["ok"], sure["shown"]) == (True, [*proved(anchored=True, known=True)])
    other = call(*elsewhere, "--sha256", "0" * 64)
    assert (other.status, "SHA-256" in other.out) == (1, True)
    document = json.loads(file.read_text())
    assert document["execution"]["executionId"] == started
    starts = [link["entry"]["event"] for link in document["audit"]["links"]]
    assert starts == ["execution.start"]
    file.write_text(file.read_text().replace('"Greet"', '"Greed"'))
    broken = call(*elsewhere)
    assert (broken.status, broken.out.startswith("DOES NOT FIT: ")) == (1, True)
    assert call(*elsewhere, "--json").json["ok"] is False


def test_evidence_has_a_name_of_its_own(wfcore: Call, started: str) -> None:
    """Without --output the file is named after the execution."""
    assert wfcore("evidence", "write", started).status == 0
    assert Path(f"{started}.evidence.json").is_file()


def test_evidence_of_nothing_is_refused(wfcore: Call) -> None:
    """An unknown execution leaves no file."""
    said = wfcore("evidence", "exec_unknown")
    assert (said.status, "Execution" in said.err) == (1, True)
    assert not list(Path().glob("*.json"))


def test_evidence_is_not_written_from_a_log_that_does_not_fit(
    wfcore: Call, started: str, data: Path
) -> None:
    """AL-6: the answer says where to look."""
    change(data, "UPDATE audit SET previous = 'x' WHERE execution_id IS NOT NULL")
    said = wfcore("evidence", started)
    assert (said.status, "wfcore audit verify" in said.err) == (1, True)


@pytest.mark.parametrize("text", ["null", "{}", '{"items": [1]}', "[" * 200_000, "\0"])
def test_another_file_is_no_list_of_passkeys(wfcore: Call, tmp_path: Path, text: str) -> None:
    """A file for --trust that is no list, also one that nests without end, is an error in words."""
    file = tmp_path / "trusted.json"
    file.write_text(text)
    said = wfcore("evidence", "verify", str(file), "--trust", str(file))
    assert said.status == 1
    assert "wfcore passkey list --json" in said.err
