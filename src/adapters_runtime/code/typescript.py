"""
The compilation of TypeScript to JavaScript, done once when a workflow is applied.

Node itself replaces the types by blanks, so lines and columns stay.
"""

import json
import subprocess
from collections.abc import Sequence

from attrs import frozen

_STRIP = """
const { stripTypeScriptTypes } = require("module");
const stripped = (source) => {
  try { return { text: stripTypeScriptTypes(source) }; }
  catch (error) {
    const line = /^[^\\n]*:(\\d+)\\n/.exec(error.stack);
    return { problem: (line ? `line ${line[1]}: ` : "") + error.message };
  }
};
let sources = "";
process.stdin.on("data", (part) => (sources += part));
process.stdin.on("end", () => console.log(JSON.stringify(JSON.parse(sources).map(stripped))));
"""
_FLAGS = ("--disable-warning=ExperimentalWarning",)
_TIMEOUT_S = 20.0


@frozen
class StrippedSource:
    """A source as JavaScript, or Node's error message."""

    text: str | None = None
    problem: str | None = None


def without_types(sources: Sequence[str], node: str) -> Sequence[StrippedSource]:
    """
    Each of *sources* without types, by one start of *node*.

    If that start fails, all sources are left unchanged, and Node strips the types when the steps
    run.
    """
    try:
        answer = subprocess.run(  # noqa: S603 - an interpreter that was found
            [node, *_FLAGS, "-e", _STRIP],
            input=json.dumps(sources),
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
            text=True,
            env={},
        ).stdout
        return [_stripped(found) for found in json.loads(answer)]
    except (OSError, subprocess.SubprocessError, ValueError):
        return [StrippedSource() for _ in sources]


def _stripped(found: dict[str, str]) -> StrippedSource:
    problem = found.get("problem")
    if problem is not None:
        problem = " ".join(line.strip() for line in problem.splitlines() if line.strip())
    return StrippedSource(found.get("text"), problem)
