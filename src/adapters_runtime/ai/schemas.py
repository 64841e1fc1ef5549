"""
Answers checked against their JSON Schema, by a library that may load nothing. AI-2, AI-9.

`wfcore.rules.definition.json_schema` has checked the schema: its references stay within it.
Patterns are matched in linear time, hence without look-around and back-references.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from adapters_runtime.ai import UNAVAILABLE, is_available
from adapters_runtime.code.outputs import parse
from wfcore.model.json import Json, JsonObject

_MOST_ERRORS = 10
_SHOWN = 300
_FENCE = "```"


class Misfit(Exception):
    """The answer does not match the schema; the message tells the author why."""


def problems(schema: JsonObject) -> Sequence[str]:
    """What is wrong with a schema itself. `wfcore.rules.definition.check.SchemaProblems`."""
    if not is_available():
        return [UNAVAILABLE]
    import jsonschema_rs

    try:
        jsonschema_rs.meta.validate(dict(schema))
        _validator(schema)
    except jsonschema_rs.ValidationError as problem:
        return [f"is no JSON Schema: {_told(problem)}"]
    except (jsonschema_rs.ReferencingError, ValueError) as problem:
        return [f"is no JSON Schema: {_short(str(problem))}"]
    return []


def fitting(schema: JsonObject, text: str) -> Json:
    """
    The JSON in an answer's *text*. Raises `Misfit` if it is not JSON or does not match *schema*.
    """
    try:
        value = parse(_bare(text).encode("utf-8", "replace"))
    except ValueError as problem:
        raise Misfit(f"it is no JSON: {problem}") from None
    told = [_told(error) for error in islice(_validator(schema).iter_errors(value), _MOST_ERRORS)]
    if told:
        raise Misfit("; ".join(told))
    return value


def _validator(schema: JsonObject) -> Any:
    import jsonschema_rs

    def nothing(uri: str) -> Any:
        raise ValueError(f"{uri} is outside the schema")

    return jsonschema_rs.validator_for(
        dict(schema), retriever=nothing, pattern_options=jsonschema_rs.RegexOptions()
    )


def _bare(text: str) -> str:
    """Without the code fence that models like to add around JSON."""
    stripped = text.strip()
    if stripped.startswith(_FENCE) and stripped.endswith(_FENCE) and "\n" in stripped:
        return stripped.partition("\n")[2].removesuffix(_FENCE)
    return text


def _told(error: Any) -> str:
    """Where and what, shortened: messages quote the value that they are about."""
    where = "".join(f"[{key!r}]" for key in error.instance_path)
    return f"{where or 'the answer'}: {_short(error.message)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN // 2]} … {line[-_SHOWN // 2 :]}"
