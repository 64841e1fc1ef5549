"""The steps of a definition at their places in a run: in loops, once for each round."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from wfcore.model.execution import StepResult
from wfcore.model.workflow import LoopStep, Step, lists_of
from wfcore.rules.execution.plan import StepAt
from wfcore.rules.execution.scope import round_prefix

Results = Mapping[str, StepResult]
Rounds = Mapping[str, Sequence[int]]
"""The numbers of the rounds of each loop, by the key of the loop."""
Steps = tuple[Step, ...]


def begun_rounds(results: Results) -> Rounds:
    """The rounds of each loop that have a result, in one pass: loops may have thousands."""
    found: dict[str, set[int]] = defaultdict(set)
    for key in results:
        loop = key
        while "." in loop:
            loop, number, _ = loop.rsplit(".", 2)
            found[loop].add(int(number))
    return {loop: sorted(rounds) for loop, rounds in found.items()}


def prefixes_inside(at: StepAt, rounds: Rounds) -> Iterator[str]:
    """The prefixes of the keys inside of a step; for a loop, one prefix for each round."""
    if isinstance(at.step, LoopStep):
        return (round_prefix(at.key, number) for number in rounds.get(at.key, ()))
    return iter((at.prefix,))


def nodes(steps: Steps, prefix: str, rounds: Rounds) -> Iterator[StepAt]:
    """*steps* and all steps inside of them, in the order of the text, rounds by number."""
    for step in steps:
        at = StepAt(step, prefix)
        yield at
        for inner in prefixes_inside(at, rounds):
            for _, inside in lists_of(step):
                yield from nodes(inside, inner, rounds)
