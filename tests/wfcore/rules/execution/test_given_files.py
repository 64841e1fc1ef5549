"""The results whose files a step reads, and the places of the files."""

from hypothesis import given
from hypothesis import strategies as st

from wfcore.model.execution import Execution, StepStatus
from wfcore.model.workflow import (
    Branch,
    Case,
    ChildStep,
    CodeStep,
    Definition,
    Language,
    LoopStep,
    ParallelStep,
    Step,
    SwitchStep,
)
from wfcore.rules.execution.given_files import folder_of, latest, paths_of, sources
from wfcore.testing import builders as make


def code(name: str, *files: str) -> CodeStep:
    return CodeStep(name, Language.BASH, ":", files=files)


def run_of(**attempts: int) -> Execution:
    """An execution whose steps ended after so many attempts; `__` is written for a dot."""
    results = {
        name.replace("__", "."): make.step_result(StepStatus.COMPLETED, attempts=count)
        for name, count in attempts.items()
    }
    return make.execution(step_results=results)


def keys(step: str, run: Execution, *steps: Step) -> list[str]:
    return list(sources(Definition("flow", steps), run, step))


FETCH, LOAD = code("fetch"), code("load", "fetch")


def test_a_plain_name_is_the_step_of_that_name() -> None:
    """FI-1: begun or not, so that a step that left nothing has a folder, too."""
    assert keys("load", run_of(fetch=1), FETCH, LOAD) == ["fetch"]
    assert keys("load", run_of(), FETCH, LOAD) == ["fetch"]
    assert keys("fetch", run_of(), FETCH, LOAD) == []


def test_a_loop_is_all_steps_of_all_its_rounds() -> None:
    """FI-1: in the order of the rounds, nested loops too; a container itself has no folder."""
    inner = LoopStep("inner", [], "x", (code("cell"),))
    loop = LoopStep("lines", [], "line", (code("split"), inner))
    run = run_of(
        lines=1,
        lines__1__split=1,
        lines__0__split=1,
        lines__1__inner=1,
        lines__1__inner__0__cell=1,
    )
    assert keys("load", run, loop, code("load", "lines")) == [
        "lines.0.split",
        "lines.1.split",
        "lines.1.inner.0.cell",
    ]


def test_within_a_round_a_plain_name_means_that_round() -> None:
    """FI-1: and a name from outside of the loop means the step there, once."""
    loop = LoopStep("lines", [], "line", (code("split"), code("count", "split", "fetch")))
    run = run_of(fetch=1, lines=1, lines__0__split=1, lines__1__split=1)
    assert keys("lines.1.count", run, FETCH, loop) == ["lines.1.split", "fetch"]


def test_branches_and_cases_are_all_steps_in_them() -> None:
    """FI-1: of a case that was not taken, too, which left nothing."""
    both = ParallelStep("both", (Branch("a", (code("a1"),)), Branch("b", (code("b1"),))))
    one = SwitchStep("one", (Case("{{ true }}", (code("c1"),)),), (code("c2"),))
    run = run_of(both=1, a1=1, b1=1, one=1, c2=1)
    assert keys("load", run, both, one, code("load", "both", "one", "a1")) == [
        "a1",
        "b1",
        "c1",
        "c2",
    ]


def test_a_child_is_the_execution_that_was_started_last() -> None:
    """FI-1: a `workflow` step comes with the id of its child."""
    result = make.step_result(StepStatus.COMPLETED, child_id="exec_7")
    run = make.execution(step_results={"sub": result})
    definition = Definition("flow", (ChildStep("sub", "other"), code("load", "sub")))
    assert sources(definition, run, "load") == {"sub": "exec_7"}


def test_files_of_the_last_attempt_in_this_round_count() -> None:
    """FI-2: not those of earlier attempts, and not those of results that were put aside."""
    run = run_of(fetch=3)
    left = [
        make.artifact("art_1", step_name="fetch", attempt=2),
        make.artifact("art_2", step_name="fetch", attempt=3),
        make.artifact("art_3", step_name="aside", attempt=1),
    ]
    assert [one.id for one in latest(run.step_results, left)] == ["art_2"]


def test_a_step_that_was_skipped_in_this_round_left_nothing() -> None:
    """FI-2: its number of attempts is that of the round before, and so are the artifacts."""
    skipped = make.step_result(StepStatus.SKIPPED, attempts=2, earlier=2)
    left = [make.artifact("art_1", step_name="fetch", attempt=2)]
    assert list(latest({"fetch": skipped}, left)) == []


def test_files_lie_under_the_names_of_artifacts() -> None:
    """FI-3: sorted by path; names that are equal get a number, as artifacts do."""
    left = [make.artifact(f"art_{n}", name=name) for n, name in enumerate(("b/x.csv", "a", "a"))]
    found = folder_of("fetch", left)
    assert [(path, one.id) for path, one in found.files.items()] == [
        ("a", "art_1"),
        ("a (2)", "art_2"),
        ("b/x.csv", "art_0"),
    ]


def test_a_name_that_is_no_path_becomes_one() -> None:
    """FI-3: names are labels, so that of a runner's own may be anything."""
    long = ["x" * 300 + ".csv", "d/" * 2_000 + "e"]
    odd = ["../../etc/passwd", "/root", "a//b", ".", "\0", "", *long]
    assert paths_of(odd) == [
        "__/__/etc/passwd",
        "root",
        "a/b",
        "_",
        "?",
        "_ (2)",
        "x" * 56 + ".csv",
        "d/" * 1_023 + "e",
    ]


NAMES = st.lists(
    st.text(st.sampled_from("ab./\0é\ud800 "), max_size=8) | st.text(max_size=400), max_size=12
)


@given(NAMES)
def test_any_names_become_files_in_folders(names: list[str]) -> None:
    """FI-3: no path is another's, or another's folder; no part is `..`, empty or too long."""
    paths = paths_of(names)
    assert len(set(paths)) == len(paths) == len(names)
    split = [path.split("/") for path in paths]
    folders = {"/".join(parts[:n]) for parts in split for n in range(1, len(parts))}
    assert not folders & set(paths)
    for part in (part for parts in split for part in parts):
        assert part not in ("", ".", "..")
        assert len(part.encode()) <= 255
        assert "\0" not in part


@given(NAMES)
def test_numbers_of_names_do_not_depend_on_the_order(names: list[str]) -> None:
    """FI-3: every machine, and every attempt, places the same files at the same paths."""
    left = [make.artifact(f"art_{n}", name=name) for n, name in enumerate(names)]
    placed = {path: one.id for path, one in folder_of("fetch", left).files.items()}
    again = folder_of("fetch", left[::-1])
    assert placed == {path: one.id for path, one in again.files.items()}
