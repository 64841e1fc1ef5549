"""A tree of steps with its code steps changed."""

from collections.abc import Callable

from attrs import evolve

from wfcore.model.workflow import CodeStep, LoopStep, ParallelStep, Step, lists_of


def replaced(
    steps: tuple[Step, ...], change: Callable[[str, CodeStep], CodeStep], path: str = "steps"
) -> tuple[Step, ...]:
    """The same tree with every code step as *change* makes it of its path and itself."""
    return tuple(_replaced(step, change, f"{path}[{at}]") for at, step in enumerate(steps))


def _replaced(step: Step, change: Callable[[str, CodeStep], CodeStep], path: str) -> Step:
    match step:
        case CodeStep():
            return change(path, step)
        case ParallelStep():
            branches = tuple(
                evolve(branch, steps=replaced(inside, change, f"{path}.{below}"))
                for branch, (below, inside) in zip(step.branches, lists_of(step), strict=True)
            )
            return evolve(step, branches=branches)
        case LoopStep():
            return evolve(step, steps=replaced(step.steps, change, f"{path}.steps"))
        case _:
            return step
