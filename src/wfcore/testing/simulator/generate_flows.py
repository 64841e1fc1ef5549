"""Workflows for simulated worlds: small definitions of every kind, drawn at random."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from wfcore.model.json import JsonObject
from wfcore.testing.simulator.seed_data import DAN, PEOPLE

NOBODY = "nobody's"
"""The tag of an execution that no client started."""
ANN, BOB, CYD = (who.account.email for who in PEOPLE)
MAIL = "mailed"
"""The name of the steps that send mail."""
VARIABLES: JsonObject = {
    "tag": {"type": "string", "default": NOBODY},
    "of": {"type": "string", "default": ""},
    "yes": {"type": "boolean", "default": True},
    "no": {"type": "boolean", "default": False},
}
DOINGS = (
    *("ok 0", "ok 500", "ok 500", "ok 3000", "ok 9000"),
    *("chatty 500", "fail 0", "flaky 1 500", "flaky 2 0"),
    *("held 1 500", "held 3 500"),
)
"""The actions of steps; see `runner`."""


def flows_from(random: Random, doings: Sequence[str] = DOINGS) -> tuple[JsonObject, ...]:
    """One to three workflows whose steps do *doings*. Later workflows may start by themselves."""
    count = random.choice((1, 2, 2, 3))
    child = f"flow {count - 1}" if count > 1 else None
    flows = [_flow(random, number, child, doings) for number in range(count)]
    careful = (_careful(flow, child if flow["name"] != child else None) for flow in flows)
    return tuple(_with_files(_with_mail(one)) for one in careful)


def _with_files(flow: JsonObject) -> JsonObject:
    """
    *flow*, in some cases with a step that reads the files of an earlier one, which leaves a file in
    each attempt. The random choices are seeded from *flow*. FI-2.
    """
    random = Random(f"{flow} files")  # noqa: S311 - chance for worlds, not for secrets
    steps = flow["steps"]
    assert isinstance(steps, list)
    leaving = [at for at, step in enumerate(steps) if _leaves(step)]
    reading = [at for at, step in enumerate(steps) if step["kind"] == "code"]
    pairs = [(one, other) for one in leaving for other in reading if one < other]
    if not pairs or random.random() < 0.5:
        return flow
    one, other = random.choice(pairs)
    verb, *numbers = steps[one]["source"].split()
    failures = numbers[0] if verb == "flaky" else "0"
    source = f"leaves {failures} {numbers[-1]}"
    made: dict[int, JsonObject] = {one: {"source": source}, other: {"files": [steps[one]["name"]]}}
    return {**flow, "steps": [{**step, **made.get(at, {})} for at, step in enumerate(steps)]}


def _leaves(step: JsonObject) -> bool:
    return step["kind"] == "code" and str(step["source"]).startswith(("ok", "flaky"))


def _with_mail(flow: JsonObject) -> JsonObject:
    """
    *flow*, perhaps with a last step that sends a mail. The random choices are seeded from *flow*,
    so every other choice in a world stays the same.
    """
    random = Random(f"{flow} mail")  # noqa: S311 - chance for worlds, not for secrets
    steps = flow["steps"]
    if random.random() < 0.85 or not isinstance(steps, list):
        return flow
    mail: dict[str, Any] = {"name": MAIL, "kind": "mail", "to": [ANN, BOB], "subject": "s"}
    mail |= {"body": "b", "timeout": random.choice((9_000, 90_000))}
    if random.random() < 0.3:
        mail["continueOnError"] = True
    return {**flow, "steps": [*steps, mail]}


def _careful(flow: JsonObject, child: str | None) -> JsonObject:
    """
    A copy of *flow* with random additions: more child workflows, `onInterrupt`, waits and retries
    for children, a budget for branches. The random choices are seeded from *flow*, so every other
    choice in a world stays the same.
    """
    random = Random(repr(flow))  # noqa: S311 - chance for worlds, not for secrets
    spends = "'branches'" in repr(flow) and random.random() < 0.5

    def careful(step: Any) -> Any:
        match step:
            case {"kind": "delay"} if random.random() < 0.3:
                return {"name": step["name"], "kind": "data", "value": ["{{ execution.id }}"]}
            case {"kind": "code"} if random.random() < 0.1:
                return _chosen(random, step)
            case {"kind": "code", "language": _, "source": doing, **rest} if spends:
                return {**rest, "kind": "ai", "model": "sim:model", "prompt": doing}
            case {"kind": "code"} if child and random.random() < 0.15:
                return careful(child_step(step["name"], child))
            case {"kind": "code" | "ai"} if random.random() < 0.15:
                return {**step, "onInterrupt": random.choice(("fail", "resume"))}
            case {"kind": "workflow"} if (draw := random.random()) < 0.75:
                return {**step, **_patience(random, retries=draw < 0.6)}
            case {"branches": branches}:
                inner = [{**one, "steps": [*map(careful, one["steps"])]} for one in branches]
                return {**step, "branches": inner}
            case {"steps": steps}:
                return {**step, "steps": [*map(careful, steps)]}
        return step

    top: dict[str, Any]
    top = {"onInterrupt": random.choice(("fail", "resume"))} if random.random() < 0.15 else {}
    if spends:
        top["budget"] = {"maxTokens": random.choice((10, 15, 45)), "onExceeded": "approve"}
    return _counting({**careful(flow), **top, **_last_words(random)})


STATE: JsonObject = {"count": {"type": "number", "default": 0}, "last": {"type": "array"}}
"""The state of flows with steps that count, see `runner`."""


def _counting(flow: dict[str, Any]) -> dict[str, Any]:
    """
    *flow*, in some cases with steps that write state instead of steps that just succeed. The random
    choices are seeded from *flow*. SV-3.
    """
    random = Random(f"{flow} state")  # noqa: S311 - chance for worlds, not for secrets

    def counting(part: Any) -> Any:
        match part:
            case {"kind": "code", "source": str(doing)} if doing.startswith("ok "):
                return {**part, "source": f"counts {doing.removeprefix('ok ')}"}
            case dict():
                return {name: counting(one) for name, one in part.items()}
            case list():
                return [*map(counting, part)]
        return part

    return counting({**flow, "state": STATE}) if random.random() < 0.15 else flow


def _last_words(random: Random) -> JsonObject:
    """The `onFailure` steps of some flows. One of these steps may fail, too. EX-31."""
    if random.random() < 0.7:
        return {}
    code: JsonObject = {"kind": "code", "language": "bash"}
    doings = random.sample(("ok 0", "ok 500", "ok 3000", "flaky 1 500", "fail 0"), 2)
    named = zip(("told", "tidied"), doings, strict=True)
    return {"onFailure": [{"name": name, **code, "source": doing} for name, doing in named]}


def _chosen(random: Random, step: JsonObject) -> dict[str, Any]:
    """A switch with the name of *step*. One case contains *step*; the other case never begins."""
    inner = {**step, "name": f"{step['name']}_in"}
    other = {"name": f"{step['name']}_not", "kind": "data", "value": None}
    switch: dict[str, Any] = {"name": step["name"], "kind": "switch"}
    if random.random() < 0.5:
        no = {"when": "{{ variables.no }}", "steps": [other]}
        return switch | {"cases": [no], "else": [inner]}
    yes = {"when": "{{ variables.yes }}", "steps": [inner]}
    return switch | {"cases": [yes, {**yes, "steps": [other]}]}


def _patience(random: Random, retries: bool) -> JsonObject:
    """
    The `timeout` of a `workflow` step, and perhaps a `retry` with another child.

    The death of a worker shows after a lease, and the interrupted child fails after a grace. The
    timeouts in the middle end between these two instants. EX-26.
    """
    timeout: JsonObject = {"timeout": random.choice((2_000, 9_000, 12_000, 60_000))}
    retry: JsonObject = {"retry": {"attempts": 2, "delay": random.choice((1, 500))}}
    return {**timeout, **retry} if retries else timeout


def _flow(random: Random, number: int, child: str | None, doings: Sequence[str]) -> JsonObject:
    def leaf(random: Random, name: str) -> dict[str, Any]:
        return _step(random, name, doings)

    if random.random() < 0.35:
        steps = Tree(random, leaf, child if child != f"flow {number}" else None).steps(0)
    else:
        steps = [leaf(random, f"s{at}") for at in range(random.choice((1, 2, 2, 3)))]
    _go_back(steps, Random(str(steps)))  # noqa: S311 - chance for worlds, not for secrets
    _ask_people(steps, Random(f"{steps} people"))  # noqa: S311 - as above
    flow: dict[str, Any] = {"name": f"flow {number}", "variables": VARIABLES, "steps": steps}
    if number and random.random() < 0.75:
        flow["triggers"] = _with_inputs(_triggers(random, number))
    if random.random() < 0.25:
        flow["concurrency"] = {
            "limit": random.choice((1, 2)),
            "onLimit": random.choice(("queue", "skip")),
        }
    if any(step["kind"] == "ai" for step in steps) and random.random() < 0.6:
        most = random.choice((10, 15, 45))
        flow["budget"] = {"maxTokens": most, "onExceeded": random.choice(("fail", "approve"))}
    return flow


def _go_back(steps: Sequence[dict[str, Any]], random: Random) -> None:
    """
    Let some approvals ask for changes. *random* is separate, so that no other scenario changes.
    """
    for before, step in pairwise(steps):
        if step["kind"] == "manual_approval" and random.random() < 0.8:
            step["onRevise"] = {"goto": before["name"], "max": random.choice((1, 2))}


def _ask_people(steps: Sequence[dict[str, Any]], random: Random) -> None:
    """Let some approvals name people, in stages, with delegates, and send notices to the people."""
    for step in steps:
        if step["kind"] != "manual_approval" or random.random() < 0.5:
            continue
        step["timeout"] = random.choice((9_000, 15_000, 60_000))
        step["notify"] = random.choice((["mail"], ["mail", "room"]))
        step["delegable"] = random.random() < 0.8
        if random.random() < 0.5:
            second = {"approvers": [CYD, DAN], "requiredApprovals": random.choice((1, 2))}
            step["stages"] = [{"approvers": [ANN, BOB]}, second]
            step.pop("requiredApprovals", None)
        else:
            step["approvers"] = [ANN, BOB, CYD]
        if random.random() < 0.4:
            step["humans"] = 2
            step["autoApprove"] = "{{ variables.yes }}"
        if random.random() < 0.4:
            step["escalate"] = {"after": random.choice((500, 3_000)), "to": [DAN]}


def _triggers(random: Random, number: int) -> Sequence[JsonObject]:
    if random.random() < 0.3:
        return [{"kind": "SCHEDULE", "cron": f"*/{random.choice((3, 5))} * * * *"}]
    chain: dict[str, Any] = {
        "kind": "DELAYED_COMPLETION",
        "workflow": f"flow {random.randrange(number)}",
        "delaySeconds": random.choice((0, 0, 1, 4)),
    }
    if random.random() < 0.4:
        chain["maxRuns"] = random.choice((1, 2))
    return [chain]


def _with_inputs(triggers: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """
    *triggers* with inputs, and with further ends for some chains. The chance is separate, so that
    no other part of a world changes.
    """
    random = Random(f"{triggers} inputs")  # noqa: S311 - chance for worlds, not for secrets
    made: list[JsonObject] = []
    for one in triggers:
        is_schedule = one["kind"] == "SCHEDULE"
        of = "{{ trigger.kind }}" if is_schedule else "{{ trigger.executionId }}"
        ends = {"on": random.choice((["FAILED"], ["COMPLETED", "FAILED", "CANCELLED"]))}
        more: JsonObject = ends if not is_schedule and random.random() < 0.4 else {}
        made.append({**one, **more, "inputs": {"of": of}})
    return made


def _step(random: Random, name: str, doings: Sequence[str]) -> dict[str, Any]:
    draw = random.random()
    if draw < 0.3:
        return _approval(random, name)
    step: dict[str, Any] = {"name": name}
    doing = random.choice(doings)
    if draw < 0.45:
        step |= {"kind": "ai", "model": "sim:model", "prompt": doing}
    else:
        step |= {"kind": "code", "language": "bash", "source": doing}
    if doing == "ok 9000" and random.random() < 0.3:
        step["timeout"] = 2_000
    if doing.startswith(("flaky", "fail")) and random.random() < 0.7:
        delay = random.choice((500, 2_000))
        step["retry"] = {"attempts": random.choice((2, 3)), "delay": delay}
    if random.random() < 0.1:
        step["when"] = random.choice(("{{ variables.no }}", "{{ variables.yes }}"))
    if random.random() < 0.15:
        step["continueOnError"] = True
    return step


def _approval(random: Random, name: str) -> dict[str, Any]:
    timeout = random.choice((1_500, 4_000, 9_000, 60_000))
    step: dict[str, Any] = {"name": name, "kind": "manual_approval", "timeout": timeout}
    if random.random() < 0.4:
        column = {"key": "id", "title": "Id"}
        group = {"name": "g", "title": "G", "rows": [{"id": "1"}, {"id": "2"}], "columns": [column]}
        step["groups"] = [group]
    if random.random() < 0.25:
        step["requiredApprovals"] = 2
    if random.random() < 0.2:
        step["reminders"] = [500, 1_000]
    return step


DEEPEST = 2

Leaf = Callable[[Random, str], dict[str, Any]]
"""A function that makes a step of the given name that contains no other steps."""


def child_step(name: str, workflow: str) -> dict[str, Any]:
    """
    A step that starts *workflow*. The child's tag is the id of the execution that started the
    child.
    """
    inputs = {"tag": "{{ execution.id }}"}
    return {"name": name, "kind": "workflow", "workflow": workflow, "inputs": inputs}


class Tree:
    """
    Makes steps of every kind. *leaf* makes the steps that contain no others. *child*: a workflow to
    start.
    """

    def __init__(self, random: Random, leaf: Leaf, child: str | None) -> None:
        self._random = random
        self._leaf = leaf
        self._child = child
        self._names = iter(f"s{at}" for at in range(1_000))

    def steps(self, depth: int) -> list[dict[str, Any]]:
        """Some steps, one after another."""
        return [self._step(depth) for _ in range(self._random.choice((1, 2, 2)))]

    def _step(self, depth: int) -> dict[str, Any]:
        random, name = self._random, next(self._names)
        draw = random.random()
        if draw < 0.45 or depth == DEEPEST:
            return self._leaf(random, name)
        if draw < 0.55:
            return {"name": name, "kind": "delay", "duration": random.choice((1, 500, 2_500))}
        if draw < 0.7 and self._child is not None:
            return child_step(name, self._child)
        return self._container(name, depth)

    def _container(self, name: str, depth: int) -> dict[str, Any]:
        random = self._random
        holder: dict[str, Any] = {"name": name, "maxParallel": random.choice((1, 2, 3))}
        if random.random() < 0.5:
            count = random.choice((2, 2, 3))
            branches = [{"name": f"b{n}", "steps": self.steps(depth + 1)} for n in range(count)]
            holder |= {"kind": "parallel", "branches": branches}
        else:
            items = list(range(random.choice((0, 1, 2, 3))))
            steps = self.steps(depth + 1)
            holder |= {"kind": "loop", "items": items, "as": f"i{depth}", "steps": steps}
        if random.random() < 0.25:
            holder["timeout"] = random.choice((500, 1_500, 6_000))
        if random.random() < 0.4:
            holder["continueOnError"] = True
        return holder
