"""
The scopes: small worlds, as data, of which every interleaving is explored.

A scope is small in what there is (nodes, executions, steps) and in what may happen (each act once,
each fault at most as often as `faults` says). Within these limits nothing is left to chance.
"""

from collections.abc import Mapping

from attrs import frozen

from wfcore.model.json import JsonObject
from wfcore.testing.simulator.scenario import Act

CRASH, LOSE, FREEZE, JUMP, HINT = "crash", "lost answer", "freeze", "clock jump", "hint"
FAULTS = (CRASH, LOSE, FREEZE, JUMP, HINT)
"""
The faults: a process dies; a write is done and its answer lost; a process stops for a while and
loses its leases; the wall clock jumps; a hint comes twice or without a cause.
"""


@frozen
class Scope:
    """
    A world to explore. `about`: what the scope is for. `flows`: the workflows, as in
    `WorldScenario`. `started`: the starts that were answered before the exploration begins. `acts`:
    what clients may do, each once, at any time, at the process `node`: start, decide, cancel.
    `faults`: how often each fault may happen. `before`: the moves with which every path begins; `*`
    stands for all requests of a call. `retired`: the processes that claim and sweep nothing after
    `before`: they serve clients, and finish the executions that they hold. `locks`: the store
    learns at once that a process died. `jump_ms`: how far the wall clock jumps.
    """

    name: str
    about: str
    flows: tuple[JsonObject, ...]
    started: tuple[Act, ...] = ()
    acts: tuple[Act, ...] = ()
    faults: Mapping[str, int] = {}
    nodes: tuple[str, ...] = ("n1", "n2")
    before: tuple[str, ...] = ()
    retired: frozenset[str] = frozenset()
    locks: bool = False
    jump_ms: int = 90_000


def _flow(name: str, *steps: JsonObject, **more: object) -> JsonObject:
    tag = {"tag": {"type": "string", "default": "none"}}
    return {"name": name, "variables": tag, "steps": list(steps), **more}  # type: ignore[dict-item]


def _code(name: str, source: str = "ok 0", **more: object) -> JsonObject:
    return {"name": name, "kind": "code", "language": "bash", "source": source, **more}  # type: ignore[dict-item]


def _start(tag: str = "t0", node: int = 0, number: int = 0, **what: object) -> Act:
    return Act(0, "start", node, {"tag": tag, **what}, number)  # type: ignore[dict-item]


_ASK: JsonObject = {
    "name": "ask",
    "kind": "manual_approval",
    "message": "Go on?",
    "timeout": "1h",
}
_TWO_STEPS = _flow("two", _code("a"), _code("b"))
_ASKED = _flow("asked", _ASK, _code("b"))
_ONLY_ASKED = _flow("only asked", _ASK)
_APPROVE = Act(0, "decide", 0, {"by": 0}, 1)
_REJECT = Act(0, "decide", 1, {"by": 1, "how": "reject"}, 2)
_CANCEL = Act(0, "cancel", 1, {}, 3)
_SERVES = frozenset({"n2"})
_HELD_BY_N0 = (
    *("n0.1 claims", "n0.1/claim: *"),
    *("n0.1: begin exec_001", "n0.1/exec_001:1 begin: *"),
    *("n0.1/exec_001/a.1 starts", "n0 freezes"),
)
_IN_A_GROUP = _flow("one at a time", _code("a"), concurrency={"limit": 1})
_CHAINED = _flow(
    "second",
    _code("b"),
    triggers=[{"kind": "DELAYED_COMPLETION", "workflow": "first", "delaySeconds": 1}],
)

SCOPES: Mapping[str, Scope] = {
    scope.name: scope
    for scope in (
        Scope(
            "steps",
            "two steps that may be resumed, two workers, a crash",
            (_TWO_STEPS,),
            (_start(source="manual"),),
            faults={CRASH: 1},
        ),
        Scope(
            "once",
            "two steps started by API, which are never resumed: two workers, a crash",
            (_TWO_STEPS,),
            (_start(),),
            faults={CRASH: 1},
        ),
        Scope(
            "lost",
            "two steps, two workers, two answers lost after the write",
            (_TWO_STEPS,),
            (_start(source="manual"),),
            faults={LOSE: 2},
        ),
        Scope(
            "frozen",
            "two steps, two workers, and a third that froze with a step running and thaws later",
            (_TWO_STEPS,),
            (_start(source="manual"),),
            faults={FREEZE: 1},
            nodes=("n0", "n1", "n2"),
            before=_HELD_BY_N0,
            retired=frozenset({"n0"}),
        ),
        Scope(
            "approval",
            "an approval, approved and rejected at once at two processes",
            (_ONLY_ASKED,),
            (_start(),),
            (_APPROVE, _REJECT),
            retired=_SERVES,
        ),
        Scope(
            "cancel",
            "an approval and a step, approved and cancelled at once",
            (_ASKED,),
            (_start(),),
            (_APPROVE, _CANCEL),
            retired=_SERVES,
        ),
        Scope(
            "expiry",
            "an approval that expires while it is approved, swept by two processes; a freeze",
            (_ONLY_ASKED,),
            (_start(),),
            (_APPROVE,),
            faults={FREEZE: 1},
        ),
        Scope(
            "child",
            "a step that starts an execution: a cancel and a crash",
            (
                _flow("inner", _code("a")),
                _flow("outer", {"name": "call", "kind": "workflow", "workflow": "inner"}),
            ),
            (_start(flow=1),),
            (_CANCEL,),
            faults={CRASH: 1},
            retired=_SERVES,
        ),
        Scope(
            "timer",
            "a delay before a step, two workers, a crash that the store notices at once",
            (_flow("later", {"name": "wait", "kind": "delay", "duration": 2_500}, _code("b")),),
            (_start(source="manual"),),
            faults={CRASH: 1},
            locks=True,
        ),
        Scope(
            "chain",
            "a completion that starts another workflow, fired by two processes",
            (_flow("first", _code("a")), _CHAINED),
            (_start(),),
        ),
        Scope(
            "group",
            "two executions in a group of one: a cancel",
            (_IN_A_GROUP,),
            (_start("t0"), _start("t1")),
            (_CANCEL,),
            retired=_SERVES,
        ),
        Scope(
            "start",
            "two starts with one key at two processes, two answers lost",
            (_flow("one", {"name": "a", "kind": "data", "value": 1}),),
            acts=(
                _start("t1", 0, 1, keyed=True),
                _start("t1", 1, 2, keyed=True),
                _start("t1", 1, 3, keyed=True),
            ),
            faults={LOSE: 2},
        ),
        Scope(
            "clock",
            "an approval and a step, decided while the clock of the machine jumps",
            (_ASKED,),
            (_start(),),
            (_APPROVE,),
            faults={JUMP: 1},
            retired=_SERVES,
        ),
        Scope(
            "hints",
            "two branches, two workers, hints that come again",
            (
                _flow(
                    "both",
                    {
                        "name": "p",
                        "kind": "parallel",
                        "branches": [
                            {"name": "x", "steps": [_code("a")]},
                            {"name": "y", "steps": [_code("b")]},
                        ],
                    },
                ),
            ),
            (_start(source="manual"),),
            faults={HINT: 2},
        ),
    )
}
