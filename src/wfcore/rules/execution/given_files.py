"""
The files of earlier steps that a code step reads: their steps, and their places in folders.

`sources` finds the results whose artifacts a step reads, and `folder_of` places the artifacts of
one result in its folder, which has the name of the result's key. FI-1 to FI-5.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from attrs import define, frozen

from wfcore.errors import WfError
from wfcore.model.execution import Artifact, Execution, StepResult
from wfcore.model.workflow import ChildStep, CodeStep, Definition
from wfcore.rules.execution.nodes import begun_rounds, nodes
from wfcore.rules.execution.plan import StepAt
from wfcore.rules.execution.scope import name_of, prefix_of

_LONGEST_PART = 255
"""The most bytes of the name of a file that systems allow."""
_CUT_PART = 60
"""The characters that are left of a longer name; as UTF-8 they fit, and a number, too."""
_LONGEST_PATH = 2_048
"""The most bytes of a path; systems allow twice as many, with the folders above."""


class FileContent(Protocol):
    """A stored file: an artifact, or a file that will be one."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def storage_key(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def content_type(self) -> str: ...
    @property
    def sha256(self) -> str: ...


C = TypeVar("C", bound=FileContent, covariant=True)
F = TypeVar("F", bound=FileContent)


@frozen
class GivenFolder(Generic[C]):
    """
    The folder of one earlier step below `WF_FILES`. `step`: the key of the step's result, which is
    the name of the folder. `files`: the artifacts by their path in the folder, sorted.
    """

    step: str
    files: Mapping[str, C]


@define
class FilesUnavailable(WfError):
    """The files of earlier steps cannot be given to a step; *why* names the step or the setting."""

    why: str

    def __str__(self) -> str:
        return f"files: {self.why}"


def sources(definition: Definition, run: Execution, key: str) -> Mapping[str, str | None]:
    """
    The keys of the results whose artifacts the step at *key* reads, in the order of its `files`;
    for a `workflow` step with the id of the execution that it started. A container means all steps
    in it, a loop in all rounds; in a round, a plain name means the same round. FI-1.
    """
    step = definition.step(name_of(key))
    listed = step.files if isinstance(step, CodeStep) else ()
    rounds = begun_rounds(run.step_results) if listed else {}
    found: dict[str, str | None] = {}
    for source in map(definition.step, listed):
        prefix = _prefix_with(definition, prefix_of(key), source.name)
        for at in nodes((source,), prefix, rounds):
            if isinstance(at.step, CodeStep | ChildStep):
                found[at.key] = _child_of(run, at)
    return found


def _prefix_with(definition: Definition, prefix: str, name: str) -> str:
    """The prefix of the key of step *name*, as seen where keys begin with *prefix*."""
    while prefix:
        loop = prefix[:-1].rpartition(".")[0]
        if any(one.name == name for one in definition.frames[name_of(loop)]):
            return prefix
        prefix = prefix_of(loop)
    return ""


def _child_of(run: Execution, at: StepAt) -> str | None:
    result = run.step_results.get(at.key)
    return result.child_id if result and isinstance(at.step, ChildStep) else None


def latest(results: Mapping[str, StepResult], artifacts: Iterable[Artifact]) -> Iterator[Artifact]:
    """
    The *artifacts* of the last attempts in the present round, also of failed steps; without the
    artifacts of results that were put aside. FI-2.
    """
    for one in artifacts:
        result = results.get(one.step_name)
        if result is not None and result.tries and one.attempt == result.attempts:
            yield one


def folder_of(step: str, artifacts: Collection[F]) -> GivenFolder[F]:
    """The folder of the *artifacts* of one result, or of one child. FI-3."""
    ordered = sorted(artifacts, key=lambda one: (one.name, one.id))
    paths = paths_of([one.name for one in ordered])
    placed = sorted(zip(paths, ordered, strict=True), key=lambda one: one[0])
    return GivenFolder(step, dict(placed))


def require_within(folders: Iterable[GivenFolder[FileContent]], most: int) -> None:
    """Raises `FilesUnavailable` if the files have more than *most* bytes in all. FI-5."""
    size = sum(file.size for folder in folders for file in folder.files.values())
    if size > most:
        raise FilesUnavailable(
            f"{size:,} bytes in all, and WFCORE_FILES_BYTES allows {most:,}; list fewer steps"
        )


def paths_of(names: Sequence[str]) -> Sequence[str]:
    """
    The relative path of each of *names*, which are labels that may contain anything. A usual name
    is its own path. Names that would be equal, or equal to a folder, get a number. FI-3.
    """
    paths = ["/".join(_parts(name)) for name in names]
    taken = {folder for path in paths for folder in _folders(path)}
    found: list[str] = []
    for path in paths:
        found.append(unlike(taken, path))
        taken.add(found[-1])
    return found


def _parts(name: str) -> Sequence[str]:
    parts = [_part(part) for part in name.split("/") if part] or ["_"]
    while len("/".join(parts).encode()) > _LONGEST_PATH:
        parts = parts[1:]
    return parts


def _part(written: str) -> str:
    """*written* as the name of a file or folder."""
    part = written.replace("\0", "?").encode("utf-8", "replace").decode()
    if part in (".", ".."):
        return part.replace(".", "_")
    if len(part.encode()) <= _LONGEST_PART:
        return part
    stem, suffix = _split(part)
    suffix = suffix[-_CUT_PART:]
    return stem[: _CUT_PART - len(suffix)] + suffix


def _split(name: str) -> tuple[str, str]:
    """*name* without its suffix, and its suffix with the dot; a leading dot begins no suffix."""
    stem, dot, suffix = name.rpartition(".")
    return (stem, dot + suffix) if stem.strip(".") else (name, "")


def _folders(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def unlike(taken: Container[str], name: str) -> str:
    """*name*, with a number before its suffix if it is *taken*. CS-13."""
    folder, slash, last = name.rpartition("/")
    stem, suffix = _split(last)
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{folder}{slash}{stem} ({number}){suffix}"
    return found
