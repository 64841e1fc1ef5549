"""
Variables: from payloads and inputs into executions, and from executions into code steps.

Spec: variable mapping rules.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping

from wfcore.errors import InvalidInput
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Definition, Variable, VariableType
from wfcore.rules.limits import (
    SECRET_LINES,
    SECRET_VALUES,
    SECRET_VARIABLES_BYTES,
    VARIABLE_ENV_BYTES,
)
from wfcore.rules.numbers import as_written, check_numbers
from wfcore.rules.paths import below
from wfcore.rules.visible import NO_HALVES, is_text

NO_NUL = "must not have NUL characters"
PRINTABLE = r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*"
"""Text of one line that appears unchanged: no control characters, no turned directions."""
NO_CONTROLS = "must not have control characters"
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def check_printable(field: str, text: str) -> None:
    """Raises `InvalidInput` for a name that a terminal, log or page could not show unchanged."""
    if re.fullmatch(PRINTABLE, text) is None:
        raise InvalidInput(field, NO_CONTROLS)
    if not is_text(text):
        raise InvalidInput(field, NO_HALVES)


def check_text(field: str, value: Json) -> None:
    """
    Raises `InvalidInput` for NUL in a text, and for half a surrogate pair at any depth. Inside
    other JSON a NUL is written in digits and does no harm. VM-7.
    """
    text = value if isinstance(value, str) else compact(value)
    if "\0" in text:
        raise InvalidInput(field, NO_NUL)
    if not is_text(text):
        raise InvalidInput(field, NO_HALVES)


def map_payload(payload: JsonObject, mapping: Mapping[str, str] | None) -> JsonObject:
    """
    Workflow variables from a webhook payload. VM-1 to VM-3.

    Without a mapping, top-level strings, numbers and booleans keep their names. Objects, arrays,
    null, and fields whose name cannot be a variable's are ignored. A mapping names for each
    variable the top-level field to take, of any type; a missing field or null sets nothing, so the
    default applies.
    """
    if mapping is None:
        scalar = str | bool | int | float
        return {
            name: value
            for name, value in payload.items()
            if isinstance(value, scalar) and "\0" not in name and is_text(name)
        }
    found = {name: payload.get(field) for name, field in mapping.items()}
    return {name: value for name, value in found.items() if value is not None}


def bind(definition: Definition, inputs: JsonObject) -> JsonObject:
    """
    The variables of an execution: defaults overridden by *inputs*. VM-4, VM-5.

    Undeclared inputs are accepted. Raises `InvalidInput` naming the variable if a value is not of
    its declared type, if it holds NUL or half a character (VM-7) or a number that storing would
    change (NU-1), or if a required variable has no value.
    """
    bound: dict[str, Json] = {
        name: variable.default
        for name, variable in definition.variables.items()
        if variable.has_default
    }
    for name, value in inputs.items():
        check_text(f"inputs.{name}", name)
        check_text(f"inputs.{name}", value)
        check_numbers(below("inputs", name), value)
        declared = definition.variables.get(name)
        if declared is not None and not fits(declared.type, value):
            raise InvalidInput(f"inputs.{name}", f"must be {WANTED[declared.type]}")
        bound[name] = value
    for name, variable in definition.variables.items():
        if variable.required and bound.get(name) is None:
            raise InvalidInput(f"inputs.{name}", "is required")
    return bound


def check_secrets(variables: JsonObject, names: Collection[str], path: str = "inputs") -> None:
    """
    Raises `InvalidInput` for the first of the secret *names* that exceeds the bound on secrets;
    *path*: the place of *variables* in the error. Masking takes work for each line and value, so
    the sum is bounded. SC-11.
    """
    values = lines = size = 0
    for name in (name for name in variables if name in names):
        value = variables[name]
        for text in _leaves(value):
            values, lines = values + 1, lines + len(text.splitlines())
        size += len(compact(value).encode(errors="surrogatepass"))
        if values > SECRET_VALUES or lines > SECRET_LINES or size > SECRET_VARIABLES_BYTES:
            raise InvalidInput(below(path, name), _TOO_MUCH_SECRET)


_TOO_MUCH_SECRET = (
    f"secrets have at most {SECRET_LINES} lines, {SECRET_VALUES} values and"
    f" {SECRET_VARIABLES_BYTES:,} bytes together: keep only what is secret in them"
)


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    else:
        yield value if isinstance(value, str) else compact(value)


def fits(type: VariableType, value: Json) -> bool:
    """Whether *value* has the declared *type*. true is not a number; null has no type."""
    match type:
        case VariableType.STRING:
            return isinstance(value, str)
        case VariableType.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case VariableType.BOOLEAN:
            return isinstance(value, bool)
        case VariableType.OBJECT:
            return isinstance(value, Mapping)
        case VariableType.ARRAY:
            return isinstance(value, list | tuple)


WANTED: Mapping[VariableType, str] = {
    VariableType.STRING: "a string",
    VariableType.NUMBER: "a number",
    VariableType.BOOLEAN: "true or false",
    VariableType.OBJECT: "an object",
    VariableType.ARRAY: "an array",
}
"""A value of each type, in words."""


def environment(variables: JsonObject, error: Json = None) -> Mapping[str, str]:
    """
    `WF_VAR_<name>` for every variable whose name allows it: strings unchanged, other values as
    JSON; `WF_ERROR` in `onFailure`. Long values, and values with NUL, are only in the context file.
    CS-1, CS-3.
    """
    fitting = (name for name in variables if _ENV_NAME.fullmatch(name))
    given = {f"WF_VAR_{name}": variables[name] for name in fitting}
    found: dict[str, str] = {}
    for name, value in (given if error is None else {**given, "WF_ERROR": error}).items():
        text = value if isinstance(value, str) else compact(value)
        if len(text.encode(errors="surrogatepass")) <= VARIABLE_ENV_BYTES and "\0" not in text:
            found[name] = text
    return found


def compact(value: Json) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)


def parse_text(declared: Variable | None, text: str, path: str = "inputs") -> Json:
    """
    A value from the command line (`-i name=value`), read according to its declared type. *path*:
    the place of the value in errors.

    Text for a string or an undeclared variable stays text. Raises `InvalidInput`. VM-6.
    """
    if declared is None or declared.type is VariableType.STRING:
        return text
    try:
        value = as_written(text.encode())
    except (ValueError, RecursionError):
        value = None
    check_numbers(below(path, declared.name), value)
    if not fits(declared.type, value):
        raise InvalidInput(below(path, declared.name), f"must be {WANTED[declared.type]}")
    return value
