"""
State: the values of a workflow that outlive its executions. SV-1 to SV-7.

A definition declares the names. A step reads the values as they are when it begins, and writes a
JSON object that is merged. The newest definition judges what is written, whichever definition the
execution has: the values belong to the workflow.
"""

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, field, frozen

from wfcore.errors import InvalidInput, Problem
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Variable, WorkflowState
from wfcore.rules.definition.values import known_or
from wfcore.rules.limits import KIB, MIB, STATE_BYTES, STATE_VALUE_BYTES
from wfcore.rules.masking import Secrets, mask, texts_of
from wfcore.rules.numbers import check_numbers
from wfcore.rules.paths import below
from wfcore.rules.variables import WANTED, check_secrets, check_text, compact, fits

Declared = Mapping[str, Variable]


@frozen
class SeenState:
    """
    The state as an execution sees it: a value for each name that its definition declares.
    `secrets`: the names that only code steps see. SV-2, SV-6.
    """

    values: JsonObject = field(factory=dict, repr=False)
    secrets: frozenset[str] = frozenset()

    @property
    def shown(self) -> JsonObject:
        """The values without those of secret names."""
        return {name: one for name, one in self.values.items() if name not in self.secrets}

    @property
    def secret_texts(self) -> tuple[str, ...]:
        """The texts to mask: the values of secret names."""
        return tuple(texts_of(self.values[name] for name in self.secrets))


NO_STATE = SeenState()


def seen_state(declared: Declared, stored: WorkflowState | None) -> SeenState:
    """
    The *stored* values of the *declared* names. A name without a value, or with a value that the
    declaration does not admit, has its default, or null without one. SV-1, SV-2.
    """
    known = stored.values if stored is not None else {}
    values = {
        name: known[name] if name in known and fits(one.type, known[name]) else one.default
        for name, one in declared.items()
    }
    sealed = stored.secrets if stored is not None else ()
    secrets = frozenset(name for name, one in declared.items() if one.secret or name in sealed)
    return SeenState(values, secrets)


@frozen
class StateRow:
    """
    A name of a workflow's state. `value`: the present value, or None for a secret name. `is_set`:
    whether somebody set the value, so that it is not the default.
    """

    declared: Variable
    value: Json
    is_set: bool
    is_secret: bool


def state_rows(declared: Declared, stored: WorkflowState) -> tuple[StateRow, ...]:
    """The state by its *declared* names, in the order of the text. SV-7."""
    seen = seen_state(declared, stored)
    return tuple(
        StateRow(one, seen.shown.get(name), name in stored.values, name in seen.secrets)
        for name, one in declared.items()
    )


def merged(
    declared: Declared, stored: WorkflowState, changes: Mapping[str, Json], path: str = ""
) -> WorkflowState:
    """
    *stored* with *changes*, in which null puts a name back to its default; the same record if
    nothing changes. *path*: the place of *changes* in errors. SV-3.

    Raises `InvalidInput` with the name: for a name that is not declared, a value of another type, a
    value that cannot be stored unchanged (VM-7, NU-1), and for too much.
    """
    values = dict(stored.values)
    for name, value in changes.items():
        _require_fitting(declared, name, value, below(path, name))
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value
    if _size(values) > STATE_BYTES:
        raise InvalidInput(path, f"all values have more than {STATE_BYTES // MIB} MiB as JSON")
    sealed = {*stored.secrets, *secret_names(declared)}
    check_secrets(values, sealed, path)
    found = evolve(stored, values=values, secrets=tuple(sorted(sealed & values.keys())))
    return stored if found == stored else found


def _require_fitting(declared: Declared, name: str, value: Json, path: str) -> None:
    if name not in declared:
        known = known_or(name, declared) if declared else "the workflow declares no state"
        raise InvalidInput(path, f"is not declared; {known}")
    if value is None:
        return
    check_text(path, value)
    check_numbers(path, value)
    if not fits(declared[name].type, value):
        raise InvalidInput(path, f"must be {WANTED[declared[name].type]}")
    if _size(value) > STATE_VALUE_BYTES:
        raise InvalidInput(path, f"has more than {STATE_VALUE_BYTES // KIB} KiB as JSON")


def _size(value: Json) -> int:
    return len(compact(value).encode(errors="surrogatepass"))


def written(
    own: Declared,
    newest: Declared,
    stored: WorkflowState,
    changes: JsonObject,
    hidden: Iterable[Secrets],
) -> WorkflowState:
    """
    *stored* with the object that a step wrote to `WF_STATE`. *own*: the declaration of the step's
    execution, which must admit the object; *newest*: the declaration of the present definition.
    Where they differ, values that the newest does not admit are left out. The *hidden* secrets are
    masked, except in secret names. SV-3, SV-4, SC-1.

    Raises `InvalidInput` with the name.
    """
    masked, secret = {**changes}, secret_names(own, newest)
    for name in masked.keys() - secret:
        for secrets in hidden:
            masked[name] = mask(masked[name], secrets)
    if own == newest:
        return merged(newest, stored, masked)
    merged(own, WorkflowState(stored.workflow_id), masked)
    kept = {
        name: value
        for name, value in masked.items()
        if name in newest and (value is None or _admits(own[name], newest[name], value))
    }
    return merged(newest, stored, kept)


def secret_names(*declared: Declared) -> frozenset[str]:
    """The names that one of these declarations makes secret."""
    return frozenset(name for each in declared for name, one in each.items() if one.secret)


def secret_texts(changes: JsonObject, *declared: Declared) -> tuple[str, ...]:
    """The texts to mask, because *changes* put them under secret names."""
    names = secret_names(*declared)
    return tuple(texts_of(value for name, value in changes.items() if name in names))


def _admits(own: Variable, newest: Variable, value: Json) -> bool:
    """Whether *value* is of the newest type, and would not come out of a secret name."""
    return fits(newest.type, value) and (newest.secret or not own.secret)


@frozen
class Redeclared:
    """
    The state under a new declaration. `dropped`: the names whose values are given up, since they
    are no longer declared. `problems`: values that the declaration does not admit. SV-5.
    """

    state: WorkflowState
    dropped: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def redeclared(stored: WorkflowState, declared: Declared) -> Redeclared:
    """The *stored* values under the new declaration *declared*. SV-5, SV-6."""
    kept = {name: value for name, value in stored.values.items() if name in declared}
    problems = [
        Problem(below("state", name), f"{why}; wfcore workflow state … --reset {name}")
        for name, value in kept.items()
        if (why := _not_admitted(stored, declared[name], value)) is not None
    ]
    secrets = tuple(sorted(name for name in kept if declared[name].secret))
    dropped = tuple(sorted(stored.values.keys() - kept.keys()))
    return Redeclared(evolve(stored, values=kept, secrets=secrets), dropped, tuple(problems))


def _not_admitted(stored: WorkflowState, declared: Variable, value: Json) -> str | None:
    if not fits(declared.type, value):
        return f"its stored value is not {WANTED[declared.type]}"
    if declared.name in stored.secrets and not declared.secret:
        return "its stored value is secret"
    return None


def dropped_text(names: Sequence[str]) -> str:
    """A sentence about the names whose values a new declaration gives up."""
    return f"state no longer declares {', '.join(names)}; the stored values are dropped"
