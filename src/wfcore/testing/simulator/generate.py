"""Scenarios from seeds: small worlds, each with its own kinds of faults."""

from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import evolve, frozen

from wfcore.model.json import JsonObject
from wfcore.testing.simulator.faults import FaultKind, RandomFaults, Temper
from wfcore.testing.simulator.generate_flows import DOINGS, flows_from
from wfcore.testing.simulator.scenario import Act, WorldScenario
from wfcore.time import DAY

STORM_MS = 12_000
"""The time in ms within which most acts begin."""
GRID_MS = 500
"""
The grid of times in ms. Most instants and durations are multiples of the grid, so events coincide.
"""
SLOW = (
    *("/scheduler", "/claims", "/heart", ":", "/decide", "/cancel", "/start", "/trigger"),
    *(r"n1\.\d+/", r"n1\.\d+/scheduler", r"n2\.\d+/scheduler"),
)
"""
The labels of tasks that may be slow in a world: all tasks of a kind, or the tasks of one node.
"""


@frozen
class Weather:
    """
    The faults of a world, and the conditions that make these faults worst: the number of nodes, the
    actions of steps, and the sources of executions.
    """

    temper: Temper
    nodes: Sequence[int] = (1, 2, 2, 3)
    doings: Sequence[str] = DOINGS
    sources: Sequence[str] = ("open_api", "manual")


LONG = ("ok 3000", "ok 9000", "ok 9000", "flaky 1 3000")
_LONG_WORK: dict[str, Any] = {"nodes": (2, 3), "doings": LONG, "sources": ("manual",)}
STORMS = (
    Weather(Temper(frozenset({FaultKind.CRASH}), 12, "/scheduler"), **_LONG_WORK),
    Weather(Temper(frozenset({FaultKind.CRASH}), 30, "/scheduler"), **_LONG_WORK),
    Weather(Temper(frozenset({FaultKind.FREEZE}), 10), **_LONG_WORK),
    Weather(Temper(frozenset({FaultKind.LOSE}), 8)),
    Weather(Temper(frozenset({FaultKind.LOSE, FaultKind.LOSE_CLAIM, FaultKind.FAIL}), 12)),
    Weather(Temper(frozenset({FaultKind.CRASH_AFTER}), 15)),
    Weather(Temper(frozenset({FaultKind.POWER_CUT}), 60)),
    Weather(Temper(frozenset({FaultKind.HINT_LOST}), 6)),
)
"""The special sorts of weather. Each is heavy enough to show defects that no other sort shows."""


def scenario_from(seed: int) -> tuple[WorldScenario, RandomFaults]:
    """The scenario of world *seed*, and the random faults for its first play."""
    random = Random(seed)  # noqa: S311 - chance for worlds, not for secrets
    weather = random.choice(STORMS) if random.random() < 0.3 else Weather(_temper(random))
    flows = flows_from(random, weather.doings)
    reviews = _reviews(Random(f"{seed} reviews"), flows)  # noqa: S311 - as above
    excesses = _excesses(Random(f"{seed} excesses"), flows)  # noqa: S311 - as above
    nodes = random.choice(weather.nodes)
    scenario = WorldScenario(
        seed=seed,
        nodes=nodes,
        skews=_skews(Random(f"{seed} clocks"), nodes),  # noqa: S311 - as above
        locks=random.random() < 0.5,
        storm=random.choice((0, STORM_MS, STORM_MS + 4_000)),
        tick=random.choice((0, 0, 1, 7)),
        order=random.choice((0, seed, seed, seed)),
        levels=random.choice((2, 2, 2, 3, 1_000)),
        flows=flows,
        acts=_acts(random, weather, len(flows), reviews, excesses),
    )
    return scenario, RandomFaults(random, weather.temper)


SKEWS = (-600_000, -60_000, -16_000, 0, 5_000, 60_000, 600_000)
"""The errors of a node's clock in ms: less than a lease, more than a lease, more than any grace."""


def _skews(random: Random, nodes: int) -> tuple[int, ...]:
    """
    The clock errors of the nodes in a third of the worlds with several nodes; otherwise empty.
    """
    if nodes == 1 or random.random() > 1 / 3:
        return ()
    return tuple(random.choice(SKEWS) for _ in range(nodes))


def _temper(random: Random) -> Temper:
    """A temper: some worlds have no faults, other worlds a few kinds each, often or seldom."""
    slow = random.choice(SLOW) if random.random() < 0.4 else ""
    if random.random() < 0.15:
        return Temper(slow=slow)
    kinds = frozenset(
        random.sample(list(FaultKind), random.choice((1, 2, 3, 5, 8, len(FaultKind))))
    )
    return Temper(kinds, random.choice((6, 15, 40, 100)), slow)


STANDS_IN = -1
"""The number of a reviewer that stands for the person to whom an approval was delegated last."""


def _reviews(random: Random, flows: Sequence[JsonObject]) -> list[Act]:
    """The acts of approvers. They are drawn separately, so that no other act changes."""
    if "'notify'" not in repr(flows):
        return []
    acts: list[Act] = []
    for _ in range(random.choice((4, 8, 12))):
        at, node, which = _instant(random), random.randrange(3), random.choice((0, 0, 1))
        by = random.randrange(4)
        if random.random() < 0.4:
            lasts, to = random.choice((500, 500, 4_000, 60_000)), random.choice((1, 2, 3, 3))
            what: JsonObject = {"which": which, "by": by, "to": to, "lasts": lasts}
            acts.append(Act(at, "delegate", node, what))
            at, by = at + random.choice((1, 500, 2_000, 2_000)), STANDS_IN
        how = random.choice(("approve", "approve", "approve", "approve", "edit", "reject"))
        says: JsonObject = {"which": which, "by": by, "how": how, "link": random.random() < 0.5}
        acts.append(Act(at, "review", node, says))
    return acts


def _excesses(random: Random, flows: Sequence[JsonObject]) -> list[Act]:
    """Delegations beyond the end of an approval: requests that must be refused."""
    if "'notify'" not in repr(flows) or random.random() < 0.5:
        return []
    what: JsonObject = {"by": 0, "to": 3, "lasts": int(DAY), "beyond": random.choice((1, 60_000))}
    return [Act(_instant(random), "delegate", random.randrange(3), what)]


def _acts(
    random: Random,
    weather: Weather,
    flows: int,
    reviews: Sequence[Act],
    excesses: Sequence[Act],
) -> tuple[Act, ...]:
    acts: list[Act] = [*reviews]
    for number in range(random.choice((2, 3, 5, 7))):
        acts += _starts(random, weather, f"t{number}", random.randrange(flows))
    for _ in range(random.choice((1, 3, 6, 9))):
        acts += _more(random, flows)
    acts.sort(key=lambda act: act.at)
    return tuple(evolve(act, number=number) for number, act in enumerate([*acts, *excesses]))


def _instant(random: Random) -> int:
    return random.randrange(STORM_MS // GRID_MS) * GRID_MS


def _starts(random: Random, weather: Weather, tag: str, flow: int) -> list[Act]:
    """
    One start, perhaps followed by the same request or a different start at about the same time.
    """
    verb = random.choice(("start", "start", "trigger"))
    keyed = random.random() < 0.6
    what: dict[str, Any] = {"tag": tag, "flow": flow, "keyed": keyed}
    if verb == "start":
        what["source"] = random.choice(weather.sources)
        what["monitored"] = random.random() < 0.3
    at = random.choice((0, _instant(random)))
    acts = [Act(at, verb, random.randrange(3), what)]
    if random.random() < 0.25:
        other = {**what, "tag": f"{tag}b"}
        acts.append(Act(at, verb, random.randrange(3), other))
    if keyed and random.random() < 0.4:
        acts.append(Act(at + random.choice((0, 1, GRID_MS)), verb, random.randrange(3), what))
    return acts


def _more(random: Random, flows: int) -> list[Act]:
    at, node, which = _instant(random), random.randrange(3), random.choice((0, 0, 1, 2))
    draw = random.random()
    if draw < 0.4:
        first = Act(at, "decide", node, _decision(random, which, link=which > 0))
        if random.random() < 0.5:
            return [first]
        later = at + random.choice((0, 0, 1, 10))
        second = random.randrange(3)
        return [first, Act(later, "decide", second, _decision(random, which, link=which == 0))]
    if draw < 0.55:
        return [Act(at, "cancel", node, {"which": which})]
    if draw < 0.65:
        return _redrives(at, node, which)
    if draw < 0.75:
        return [Act(at, random.choice(("look", "wait")), node, {"which": which})]
    if draw < 0.85:
        drain, down = random.choice((0, 500, 5_000)), random.choice((0, 1_000, 9_000))
        return [Act(at, "stop", node, {"drain": drain, "down": down})]
    if draw < 0.9:
        return [Act(at, "apply", node, {"flow": random.randrange(flows)})]
    if draw < 0.97:
        return [Act(at, "hook", number, {"flow": 0}) for number in range(4)]
    return [Act(at, "spend", number, {"count": 4}) for number in range(2)]


def _redrives(at: int, node: int, which: int) -> list[Act]:
    """
    A redrive, perhaps from a step or with the newest definition, and perhaps twice. The random
    choices are seeded from the act, so every other choice in a world stays the same.
    """
    random = Random(f"{at} {node} {which} redrive")  # noqa: S311 - chance, not for secrets
    what: dict[str, Any] = {"which": which}
    if random.random() < 0.3:
        what["from"] = random.choice((1, 1, 2))
    if random.random() < 0.3:
        what["newest"] = True
    acts = [Act(at, "redrive", node, what)]
    if random.random() < 0.4:
        acts.append(Act(at + random.choice((0, 1)), "redrive", random.randrange(3), what))
    return acts


def _decision(random: Random, which: int, *, link: bool) -> dict[str, Any]:
    how = random.choice(("approve", "approve", "edit", "reject"))
    return {"which": which, "how": how, "by": random.choice((0, 0, 1)), "link": link}
