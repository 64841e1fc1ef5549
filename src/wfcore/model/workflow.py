"""
Workflows and their definitions as a tree of steps. Contract §4.

The tree has one node type per kind of step; a new kind is a new class here, a row in
`rules.definition` and a case in `rules.plan`.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

from attrs import field, frozen

from wfcore.instants import DurationMs, EpochMs
from wfcore.model.json import Json, JsonObject

APPROVAL_TIMEOUT = DurationMs(86_400_000)
"""How long an approval stays open where its step does not say."""


class VariableType(StrEnum):
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"


class Language(StrEnum):
    PYTHON = "python"
    JAVASCRIPT = "javascript"
    TYPESCRIPT = "typescript"
    BASH = "bash"
    RUBY = "ruby"
    LUA = "lua"
    COMMAND = "command"


class ColumnType(StrEnum):
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    ENUM = "enum"
    JSON = "json"


@frozen
class Variable:
    """A declared variable. `default` counts only where `has_default`."""

    name: str
    type: VariableType = VariableType.STRING
    required: bool = False
    has_default: bool = False
    default: Json = None
    secret: bool = False


@frozen
class Retry:
    """*attempts* in all; the n-th wait is `delay_ms * backoff ** (n - 1)`."""

    attempts: int = 1
    delay_ms: DurationMs = DurationMs(1_000)
    backoff: float = 1.0


@frozen
class Column:
    """One column of a group's rows."""

    key: str
    title: str
    type: ColumnType = ColumnType.STRING
    editable: bool = True
    required: bool = False
    options: tuple[Json, ...] = ()


@frozen
class GroupSpec:
    """A group of rows as the definition asks for it; `rows` is a template or a list."""

    name: str
    title: str
    rows: Json
    columns: tuple[Column, ...] = ()
    row_key: str | None = None


@frozen
class CodeStep:
    """Code in one of seven languages. `command` is an argument vector of templates."""

    name: str
    language: Language
    source: str = ""
    command: tuple[str, ...] = ()
    timeout_ms: DurationMs = DurationMs(30_000)
    network: bool = False
    when: str | None = None
    retry: Retry = Retry()
    continue_on_error: bool = False


@frozen
class ApprovalStep:
    """
    A pause until enough people have decided. `message` is a template.

    `reminders` are lengths of time before the expiry.
    """

    name: str
    message: str = ""
    timeout_ms: DurationMs = APPROVAL_TIMEOUT
    approvers: tuple[str, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    required_approvals: int = 1
    allow_self_approval: bool = True
    reminders: tuple[DurationMs, ...] = ()
    when: str | None = None
    continue_on_error: bool = False


Step: TypeAlias = CodeStep | ApprovalStep


@frozen
class Definition:
    """A checked workflow definition. `steps_as_written` is what the wire shows."""

    name: str
    steps: tuple[Step, ...]
    steps_as_written: tuple[JsonObject, ...]
    variables: Mapping[str, Variable] = field(factory=dict)
    output: Json = None
    has_output: bool = False
    description: str = ""

    def walk(self) -> Iterator[Step]:
        """Every step once, in the order of the text."""
        yield from self.steps

    def step(self, name: str) -> Step:
        """The step of that name. Raises `KeyError`."""
        for step in self.walk():
            if step.name == name:
                return step
        raise KeyError(name)

    @property
    def secrets(self) -> frozenset[str]:
        """Names of the variables whose values are never shown."""
        return frozenset(name for name, variable in self.variables.items() if variable.secret)


@frozen
class Workflow:
    """A named definition of an owner. `revision` counts the applied definitions from 1."""

    id: str
    name: str
    owner_id: str
    revision: int
    created_at: EpochMs
    updated_at: EpochMs
    version: int = 0


@frozen
class DefinitionSnapshot:
    """A definition as it was applied. Immutable: executions keep pointing at theirs."""

    workflow_id: str
    revision: int
    definition: Definition
    version: int = 0
