"""
The check of answers against their JSON Schema, by a library that may load nothing. AI-2, AI-9.

`wfcore.rules.definition.json_schema` has checked that all references stay within the schema.
Patterns are matched in linear time, hence without look-around and back-references.
"""

import re
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
    """Raised when an answer does not fit the schema; the message tells the author why."""


class Unfinished(Misfit):
    """
    Raised when an answer ends within thoughts or a code block. Another answer would end in the same
    way.
    """


def problems(schema: JsonObject) -> Sequence[str]:
    """The mistakes of a schema itself. The `wfcore.rules.definition.check.SchemaProblems`."""
    if not is_available():
        return [UNAVAILABLE]
    import jsonschema_rs

    try:
        jsonschema_rs.meta.validate(dict(schema))
        _validator(schema)
    except jsonschema_rs.ValidationError as problem:
        return [f"is no JSON Schema: {_message(problem)}"]
    except (jsonschema_rs.ReferencingError, ValueError) as problem:
        return [f"is no JSON Schema: {_short(str(problem))}"]
    return []


def fitting(schema: JsonObject, text: str) -> Json:
    """
    The JSON in an answer's *text*: all of the text, the text after the model's thoughts, or the
    content of its only code block. AI-2.

    Raises `Misfit` if that is not JSON or does not fit *schema*, `Unfinished` if thoughts or the
    block do not end.
    """
    value = _json_in(text)
    errors = islice(_validator(schema).iter_errors(value), _MOST_ERRORS)
    if messages := [_message(error) for error in errors]:
        raise Misfit("; ".join(messages))
    return value


def _validator(schema: JsonObject) -> Any:
    import jsonschema_rs

    def nothing(uri: str) -> Any:
        raise ValueError(f"{uri} is outside the schema")

    return jsonschema_rs.validator_for(
        dict(schema), retriever=nothing, pattern_options=jsonschema_rs.RegexOptions()
    )


def _json_in(text: str) -> Json:
    problem: ValueError | None = None
    reply = _THOUGHTS.sub("", text, count=1)
    blocks, is_open = _blocks(reply)
    for part in (text, reply, *(blocks if len(blocks) == 1 else ())):
        try:
            return parse(part.encode("utf-8", "replace"))
        except ValueError as found:
            problem = found
    if _OPENED.match(reply):
        raise Unfinished("it ends within the model's thoughts, before any JSON")
    if len(blocks) == 1 and is_open:
        raise Unfinished(f"its code block does not end, and holds no JSON: {problem}")
    raise Misfit(f"it is no JSON: {problem}")


_OPENED = re.compile(r"\s*<think(?:ing)?>")
_THOUGHTS = re.compile(
    r"\A(?:(?!<think)[^{\[`])*(?:<think(?:ing)?>.*?)?</think(?:ing)?>", re.DOTALL
)
"""The model's thoughts. Some servers leave out the opening tag."""


def _blocks(text: str) -> tuple[list[str], bool]:
    """The contents of the code blocks of *text*, and whether the last block has no end."""
    lines = text.strip().split("\n")
    fences = [at for at, line in enumerate(lines) if line.lstrip().startswith(_FENCE)]
    ends = [*fences[1::2], len(lines)]
    found = ["\n".join(lines[at + 1 : end]) for at, end in zip(fences[::2], ends, strict=False)]
    is_open = len(fences) % 2 == 1 and not found[-1].endswith(_FENCE)
    return [one.removesuffix(_FENCE) for one in found], is_open


def _message(error: Any) -> str:
    """The place and message of *error*, shortened, since the library quotes whole values."""
    where = "".join(f"[{key!r}]" for key in error.instance_path)
    return f"{where or 'the answer'}: {_short(error.message)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN // 2]} … {line[-_SHOWN // 2 :]}"
