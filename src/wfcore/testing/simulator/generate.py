"""Recipes from seeds: small worlds, each with a temper of its own."""

from collections.abc import Callable
from random import Random
from typing import Any

from wfcore.model.json import JsonObject
from wfcore.testing.simulator.chance import Drawn, Kind, Temper
from wfcore.testing.simulator.recipe import Act, Recipe

STORM_MS = 12_000
"""Acts begin within this time."""
SOURCES = ("open_api", "open_api", "manual")
VARIABLES: JsonObject = {
    "tag": {"type": "string"},
    "yes": {"type": "boolean", "default": True},
    "no": {"type": "boolean", "default": False},
}


def recipe_from(
    seed: int, flow: Callable[[Random, int], JsonObject] | None = None
) -> tuple[Recipe, Drawn]:
    """
    The recipe of world *seed*, and the chance that plays it for the first time. *flow*: how
    its workflows are made; None: as sequences.
    """
    random = Random(seed)  # noqa: S311 - chance for worlds, not for secrets
    made = flow or _flow
    flows = tuple(made(random, number) for number in range(random.choice((1, 1, 2))))
    recipe = Recipe(
        seed=seed,
        nodes=random.choice((1, 2, 2, 3)),
        locks=random.random() < 0.5,
        tick=random.choice((0, 1, 1, 7)),
        flows=flows,
        acts=_acts(random, len(flows)),
    )
    return recipe, Drawn(random, _temper(random))


def _temper(random: Random) -> Temper:
    """Some worlds know no faults, the others a few kinds each, often or seldom."""
    unrest = random.choice((0.2, 0.6, 1.0))
    if random.random() < 0.15:
        return Temper(unrest=unrest)
    kinds = frozenset(random.sample(list(Kind), random.choice((1, 2, 3, 5, 8, len(Kind)))))
    return Temper(kinds, random.choice((8, 20, 50, 120)), unrest)


def _flow(random: Random, number: int) -> JsonObject:
    count = random.choice((1, 2, 2, 3))
    steps = [step(random, f"s{at}") for at in range(count)]
    return {"name": f"flow {number}", "variables": VARIABLES, "steps": steps}


def step(random: Random, name: str) -> JsonObject:
    """A code step or an approval."""
    if random.random() < 0.35:
        return _approval(random, name)
    source = random.choice(
        ("ok 0", "ok 30", "ok 400", "ok 3000", "ok 9000", "chatty 200", "fail 20", "flaky 1 50")
    )
    step: dict[str, Any] = {"name": name, "kind": "code", "language": "bash", "source": source}
    if source == "ok 9000" and random.random() < 0.3:
        step["timeout"] = 2_000
    if source.startswith(("flaky", "fail")) and random.random() < 0.7:
        delay = random.choice((100, 500, 2_000))
        step["retry"] = {"attempts": random.choice((2, 3)), "delay": delay}
    if random.random() < 0.1:
        step["when"] = random.choice(("{{ variables.no }}", "{{ variables.yes }}"))
    if random.random() < 0.15:
        step["continueOnError"] = True
    return step


def _approval(random: Random, name: str) -> JsonObject:
    timeout = random.choice((1_500, 4_000, 9_000, 60_000))
    step: dict[str, Any] = {"name": name, "kind": "manual_approval", "timeout": timeout}
    if random.random() < 0.3:
        column = {"key": "id", "title": "Id"}
        group = {"name": "g", "title": "G", "rows": [{"id": 1}, {"id": 2}], "columns": [column]}
        step["groups"] = [group]
    return step


def _acts(random: Random, flows: int) -> tuple[Act, ...]:
    acts: list[Act] = []
    for number in range(random.choice((1, 2, 3, 4, 5))):
        acts += _starts(random, f"t{number}", random.randrange(flows))
    for _ in range(random.choice((1, 2, 4, 6))):
        acts += _more(random, flows)
    return tuple(sorted(acts, key=lambda act: act.at))


def _starts(random: Random, tag: str, flow: int) -> list[Act]:
    """One start, or the same one asked for twice at about the same time."""
    verb = random.choice(("start", "start", "trigger"))
    keyed = random.random() < 0.6
    what: dict[str, Any] = {"tag": tag, "flow": flow, "keyed": keyed}
    if verb == "start":
        what["source"] = random.choice(SOURCES)
        what["monitored"] = random.random() < 0.3
    at = random.choice((0, random.randrange(STORM_MS)))
    acts = [Act(at, verb, random.randrange(3), what)]
    if keyed and random.random() < 0.4:
        acts.append(Act(at + random.choice((0, 1, 500)), verb, random.randrange(3), what))
    return acts


def _more(random: Random, flows: int) -> list[Act]:
    at, node, which = random.randrange(STORM_MS), random.randrange(3), random.choice((0, 0, 1, 2))
    draw = random.random()
    if draw < 0.4:
        hows = ("approve", "approve", "reject")
        first = Act(at, "decide", node, {"which": which, "how": random.choice(hows)})
        if random.random() < 0.5:
            return [first]
        how = random.choice(hows)
        later = at + random.choice((0, 0, 1, 10))
        return [first, Act(later, "decide", random.randrange(3), {"which": which, "how": how})]
    if draw < 0.55:
        return [Act(at, "cancel", node, {"which": which})]
    if draw < 0.65:
        return [Act(at, "redrive", node, {"which": which})]
    if draw < 0.75:
        return [Act(at, random.choice(("look", "wait")), node, {"which": which})]
    if draw < 0.85:
        drain, down = random.choice((0, 500, 5_000)), random.choice((0, 1_000, 9_000))
        return [Act(at, "stop", node, {"drain": drain, "down": down})]
    if draw < 0.9:
        return [Act(at, "apply", node, {"flow": random.randrange(flows)})]
    if draw < 0.97:
        return [Act(at, "hook", number, {"flow": 0}) for number in range(4)]
    return [Act(at, "spend", number, {"count": 160}) for number in range(2)]
