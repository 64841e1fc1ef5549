"""
What the executions of the kill loop do: write into the ledger, nap, and write again.

The ledger lies outside the data folder and is the only judge of what was started. One line for
each moment: `begun|ended <execution> <step> <attempt> <tag>`; the tag is the start's own.
"""

from collections import Counter
from pathlib import Path

from attrs import frozen

STEP = """
      write() {
        echo "$1 $WF_EXECUTION_ID $WF_STEP_NAME $WF_ATTEMPT $WF_VAR_tag" >> "$WF_VAR_ledger"
      }
      write begun
"""
FIRST = f"""
  - name: first
    kind: code
    language: bash
    source: |{STEP}
      write ended
"""
LAST = f"""
  - name: last
    kind: code
    language: bash
    source: |{STEP}
      setsid -f sleep 600 >/dev/null 2>&1
      sleep "$WF_VAR_nap"
      write ended
"""
ASK = """
  - {name: review, kind: manual_approval, message: "Shall {{ variables.tag }} go on?"}
"""


def flow(name: str, ledger: Path) -> bytes:
    """The definition of `work` (two steps) or `ask` (with an approval between them)."""
    middle = ASK if name == "ask" else ""
    variables = f"variables: {{tag: {{type: string}}, ledger: {{type: string, default: {ledger}}}}}"
    return f"name: {name}\n{variables}\nsteps:{FIRST}{middle}{LAST}".encode()


@frozen
class Line:
    """One moment of one step, as the step itself wrote it down."""

    moment: str
    execution_id: str
    step: str
    attempt: str
    tag: str


class Ledger:
    """All that steps have written so far."""

    def __init__(self, path: Path) -> None:
        text = path.read_text() if path.exists() else ""
        self.lines = [Line(*line.split()) for line in text.splitlines()]
        self.begun = Counter((line.execution_id, line.step) for line in self._at("begun"))
        self.ended = Counter((line.execution_id, line.step) for line in self._at("ended"))

    def _at(self, moment: str) -> list[Line]:
        return [line for line in self.lines if line.moment == moment]

    @property
    def cut_off(self) -> set[str]:
        """The executions with a step that began and did not end. Right only while all is dead."""
        return {execution_id for execution_id, _ in self.begun.keys() - self.ended.keys()}

    @property
    def executions_by_tag(self) -> dict[str, set[str]]:
        """Who wrote under which tag."""
        found: dict[str, set[str]] = {}
        for line in self.lines:
            found.setdefault(line.tag, set()).add(line.execution_id)
        return found
