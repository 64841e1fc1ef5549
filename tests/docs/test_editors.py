"""What an editor shows of a definition, by the language server that editors use for YAML. DF-10."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.distribution import missing
from wfcore.rules.definition.check import definition_schema

EDITORS = Path(__file__).with_name("editors")
NODE = shutil.which("node")

GOOD = """\
name: Refund review
steps:
  - name: fetch
    kind: code
    language: python
    source: |
      print(1)
    retry: {attempts: 3, delay: 2s}
  - name: review
    kind: manual_approval
    timeout: 24h
    groups:
      - name: refunds
        rows: "{{ steps.fetch.output }}"
        rowKey: id
        columns: [{key: id, editable: false}, {key: amount, type: number}]
  - name: each
    kind: loop
    items: [1, 2]
    as: one
    steps:
      - {name: pause, kind: delay, duration: 5m}
output: "{{ steps.each.output }}"
"""


def editor(text: str, line: int = 0, character: int = 0) -> Any:
    """The mistakes marked in *text*, and what is offered and said at a place (from 0)."""
    if NODE is None or not (EDITORS / "node_modules").is_dir():
        missing("Node, or yaml-language-server in tests/docs/editors, is not installed")
    asked = {"schema": definition_schema(), "text": text, "line": line, "character": character}
    done = subprocess.run(
        [NODE, str(EDITORS / "ask.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_good_definition_is_not_marked():
    """The editor finds nothing in a definition with nested steps, rows and durations."""
    assert editor(GOOD)["marked"] == []


def test_mistakes_are_marked_where_they_are():
    """A typing error, an unknown language and a bad duration, each on its line and nothing else."""
    text = (
        GOOD.replace("language: python", "language: pyton")
        .replace("timeout: 24h", "timout: 24h")
        .replace("duration: 5m", "duration: 5 minutes")
    )
    assert {one["line"] for one in editor(text)["marked"]} == {5, 11, 22}


def test_fields_of_the_kind_are_offered():
    """In a code step the editor offers what a code step has, and nothing of other kinds."""
    text = "name: W\nsteps:\n  - name: a\n    kind: code\n    \n"
    offered = editor(text, 4, 4)["offered"]
    assert {"language", "source", "retry", "timeout"} <= set(offered)
    assert not {"approvers", "prompt", "branches"} & set(offered)


def test_values_are_offered():
    """Where a kind is written, the editor offers the kinds."""
    text = "name: W\nsteps:\n  - name: a\n    kind: \n"
    assert {"code", "ai", "manual_approval", "loop"} <= set(editor(text, 3, 10)["offered"])


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("concurrency:", "How many executions run at once."),
        ("timeout:", "Like 500ms, 30s, 5m, 24h, 7d; a bare integer is milliseconds."),
        ("rowKey:", "The column that identifies a row"),
        ("duration:", "How long to wait."),
    ],
)
def test_what_a_field_is_is_said_where_the_pointer_rests(word: str, sentence: str):
    """At the top, in a step, in a group, in a step of a loop: the sentence of the documentation."""
    text = GOOD.replace("steps:", "concurrency: {limit: 1}\nsteps:", 1)
    before = text[: text.index(word) + 2]
    said = editor(text, before.count("\n"), len(before) - before.rfind("\n") - 1)["said"]
    assert sentence in said.replace("\\", "")
