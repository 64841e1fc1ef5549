"""
What the executions of the kill loop do: write into the ledger, nap, and write again.

The ledger lies outside the data folder and is the only judge of what was started. One line for
each moment: `begun|ended|released|read|follows <execution> <step> <attempt> <text>`; the text is
the tag that the execution was started with, or the rows, the file or the input that a step was
given. While there is a file beside
it that is called `ledger.hold`, a step that has begun does not go on.
"""

from collections import Counter
from pathlib import Path

from attrs import frozen

FLOWS = ("leaf", "work", "once", "ask", "tree", "count")
"""Flows that somebody starts."""
BY_THEMSELVES = ("after", "few", "tick", "skip")
"""Flows that only their triggers start."""
MOST_FEW = 3
TRIGGERS = {
    "after": "{kind: DELAYED_COMPLETION, workflow: work, delaySeconds: 1, "
    'inputs: {follows: "{{ trigger.executionId }}"}}',
    "few": f"{{kind: DELAYED_COMPLETION, workflow: once, maxRuns: {MOST_FEW}}}",
    "tick": '{kind: SCHEDULE, cron: "* * * * *"}',
    "skip": '{kind: SCHEDULE, cron: "* * * * *", missed: skip}',
}
NOBODY = "nobody"
"""The tag of what nobody started."""
NEVER_AGAIN = ("once",)
"""Flows that say `onInterrupt: fail`."""
STEPS = {
    "leaf": ("first", "last"),
    "work": ("first", "last"),
    "once": ("first", "last"),
    "ask": ("first", "last"),
    "tree": (
        *("first", "second", "early", "answered", "late"),
        *(f"each.{index}.turn" for index in range(3)),
        "last",
    ),
    "count": ("first", "last"),
    "after": ("first", "last"),
    "few": ("first",),
    "tick": ("first",),
    "skip": ("first",),
}
"""The code steps that each flow consists of, by their keys in the execution."""
ROWS = ("one", "two")
NOTE = "asked"
"""What is in the column `note` of every row that people are asked about."""


def _code(name: str, *lines: str) -> str:
    """A code step that writes when it begins and when it ends, and does *lines* in between."""
    source = (
        "write() {",
        '  echo "$1 $WF_EXECUTION_ID $WF_STEP_NAME $WF_ATTEMPT $2" >> "$WF_VAR_ledger"',
        "}",
        'write begun "$WF_VAR_tag"',
        'while [ -e "$WF_VAR_ledger.hold" ]; do sleep 0.02; done',
        *lines,
        'write ended "$WF_VAR_tag"',
    )
    text = "\n".join(f"    {line}" for line in source)
    return f"- name: {name}\n  kind: code\n  language: bash\n  source: |\n{text}\n"


NAP = 'sleep "$WF_VAR_nap"'
DAEMON = "setsid -f sleep 600 >/dev/null 2>&1"
ARTIFACT = 'echo "$WF_VAR_tag" > "$WF_ARTIFACTS/note"'
STATE = 'echo "{\\"last\\": \\"$WF_EXECUTION_ID $WF_ATTEMPT\\"}" > "$WF_STATE"'
STATEFUL = "work"
"""The flow whose last step writes itself into the state of its workflow."""
COUNTING = "count"
"""
The flow whose last step reads the file of the first one, adds one to the state of its workflow, and
is followed by a mail. One execution of it runs at a time.
"""
TELL = (
    "- {name: tell, kind: mail, to: [ann@example.org], "
    'subject: "counted {{ execution.id }}", body: b}\n'
)
COUNTS = (
    'write read "$(<"$WF_FILES/first/note")"',
    """count=$(grep -o '"count": *[0-9]*' "$WF_CONTEXT" | grep -o '[0-9]*$')""",
    'echo "{\\"count\\": $((count + 1))}" > "$WF_STATE"',
)
FOLLOWS = 'write follows "${WF_VAR_follows:-nothing}"'
RELEASED = (
    'context=$(<"$WF_CONTEXT"); rest=${context//\'"note":\'/}',
    "count=$(((${#context} - ${#rest}) / 7)); note=${context##*'\"note\":'}; note=${note#*'\"'}",
    'write released "$count*${note%%\'"\'*}"',
)
"""Says how many rows the step was given, and what is in the note of the last one."""

REVIEW = '- {name: review, kind: manual_approval, message: "Shall {{ variables.tag }} go on?"}\n'
ROW_REVIEW = f"""
- name: review
  kind: manual_approval
  message: Which ones, and why?
  groups:
    - name: rows
      title: Rows
      rows: [{", ".join(f"{{order: {order}, note: {NOTE}}}" for order in ROWS)}]
      rowKey: order
      columns:
        - {{key: order, title: Order, editable: false}}
        - {{key: note, title: Note}}
""".lstrip()
LOOP = """
- name: each
  kind: loop
  items: [0, 1, 2]
  as: item
  maxParallel: 2
  steps:
""".lstrip()
CHILD = """
- name: below
  kind: workflow
  workflow: leaf
  inputs: {tag: "{{ variables.tag }}.below", nap: "{{ variables.nap }}"}
""".lstrip()
BRANCHES = {
    "two": _code("first") + _code("second", DAEMON, NAP),
    "asked": _code("early") + REVIEW + _code("answered", NAP),
    "timed": "- {name: pause, kind: delay, duration: 200ms}\n" + _code("late", NAP),
    "rounds": LOOP + "".join(f"    {line}\n" for line in _code("turn", NAP).splitlines()),
    "child": CHILD,
}


def _indented(text: str, by: int) -> str:
    return "".join(" " * by + line + "\n" for line in text.splitlines())


def _tree() -> str:
    branches = "".join(
        f"    - name: {name}\n      steps:\n{_indented(steps, 8)}"
        for name, steps in BRANCHES.items()
    )
    return f"- name: both\n  kind: parallel\n  branches:\n{branches}" + _code("last")


def flow(name: str, ledger: Path) -> bytes:
    """
    The definition of a flow: `work` (two steps, the last leaves an artifact), `ask` (rows for
    people between them), `count` (a file, a counter, a mail), `tree` (branches with steps, a
    question, a delay, a loop and a child), `leaf` (the child), `once` (two steps that must never
    begin again); `after` and `few` follow completions, `tick` and `skip` a schedule.
    """
    steps = {
        "leaf": _code("first") + _code("last", DAEMON, NAP),
        "work": _code("first") + _code("last", DAEMON, ARTIFACT, STATE, NAP),
        "once": _code("first") + _code("last", DAEMON, NAP),
        "ask": _code("first") + ROW_REVIEW + _code("last", DAEMON, *RELEASED, NAP),
        "tree": _tree(),
        "count": _code("first", ARTIFACT)
        + _code("last", *COUNTS, NAP).replace("kind: code\n", "kind: code\n  files: [first]\n")
        + TELL,
        "after": _code("first", FOLLOWS) + _code("last", DAEMON, NAP),
    }.get(name, _code("first", NAP))
    defaults = {"ledger": f", default: {ledger}"}
    top = "onInterrupt: fail\n" if name in NEVER_AGAIN else ""
    if name == STATEFUL:
        top += "state: {last: {type: string}}\n"
    if name == COUNTING:
        top += "state: {count: {type: number, default: 0}}\n"
    if name in TRIGGERS:
        defaults |= {"tag": f", default: {NOBODY}", "nap": ', default: "0.05"'}
        top += f"triggers: [{TRIGGERS[name]}]\n"
    variables = (
        f"{variable}: {{type: string{defaults.get(variable, '')}}}"
        for variable in ("tag", "nap", "ledger", *(("follows",) if name == "after" else ()))
    )
    top += f"name: {name}\nvariables: {{{', '.join(variables)}}}\n"
    return f"{top}steps:\n{_indented(steps, 2)}".encode()


@frozen
class Attempt:
    """One attempt of one step: what must start once, if at all."""

    execution_id: str
    step: str
    number: int


@frozen
class Line:
    """One moment of one attempt, as the step itself wrote it down."""

    moment: str
    attempt: Attempt
    text: str


class Ledger:
    """All that steps have written so far. Times are by attempt."""

    def __init__(self, path: Path) -> None:
        text = path.read_text() if path.exists() else ""
        self.lines = [_line(line) for line in text.splitlines()]
        self.begun = Counter(line.attempt for line in self._at("begun"))
        self.ended = Counter(line.attempt for line in self._at("ended"))
        self.begun_of = {attempt.execution_id for attempt in self.begun}
        """The executions of which something was begun."""
        self.released = {line.attempt.execution_id: line.text for line in self._at("released")}
        """What the step behind the question was given, by execution."""
        self.follows = {line.attempt.execution_id: line.text for line in self._at("follows")}
        """What the step of a chain was told that it follows, by execution."""
        self.read = {line.attempt.execution_id: line.text for line in self._at("read")}
        """What stood in the file that a step read, by execution."""

    def _at(self, moment: str) -> list[Line]:
        return [line for line in self.lines if line.moment == moment]

    @property
    def cut_off(self) -> set[Attempt]:
        """What began and did not end. Right only while all is dead."""
        return set(self.begun.keys() - self.ended.keys())

    @property
    def executions_by_tag(self) -> dict[str, set[str]]:
        """Who wrote under the tag of a start."""
        found: dict[str, set[str]] = {}
        for line in self._at("begun"):
            if line.text != NOBODY:
                found.setdefault(line.text, set()).add(line.attempt.execution_id)
        return found


def _line(text: str) -> Line:
    moment, execution_id, step, attempt, about = text.split()
    return Line(moment, Attempt(execution_id, step, int(attempt)), about)
