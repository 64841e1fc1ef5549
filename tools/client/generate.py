"""
Writes the generated modules of `wfcore_client`, which are not kept in git. Decision 111.

- `shapes.py`, from the attrs classes of `wfcore.wire` that the routes for keys return: the client
  needs no attrs, no cattrs and no core.
- `backoff.py`, from `wfcore.rules.backoff`.
- `synchronous.py`, from `asynchronous.py`, without `async` and `await`.

`make client` runs this in the development tree, and `client/build_hook.py` in each build.
"""

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import attrs

from adapters_http.route import Auth
from adapters_http.routes import ROUTES
from wfcore.rules import backoff
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.states import ends
from wfcore.wire.events import EventView
from wfcore.wire.webhooks import CallbackView

PACKAGE = Path(__file__).parents[2] / "src" / "wfcore_client"
BY_KEY = (Auth.KEY, Auth.KEY_AFTER_BODY, Auth.TRIGGER)

HEAD = "Written by tools/client/generate.py from {}: do not edit."

SHAPES = f"""\
'''
The shapes of what the API returns, and the constants in them.

{HEAD.format("wfcore.wire")}
'''

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeAlias


class Word(StrEnum):
    '''A constant of the API. A constant of a newer server is kept unchanged.'''

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word
"""
FINAL = """
FINAL_STATUSES = frozenset({{{statuses}}})
FINAL_EVENTS = frozenset(EventKind(f"execution.{{one.lower()}}") for one in FINAL_STATUSES)
"""


def shapes() -> str:
    """The module of shapes; each shape stands behind those that it refers to."""
    by_key = [route for route in ROUTES if route.auth in BY_KEY]
    returned = (shape for one in by_key for shape in (one.returns, *one.otherwise.values()))
    views = {shape for shape in returned if shape is not None}
    found: dict[str, str] = {}
    for view in (*sorted(views, key=lambda one: one.__name__), EventView, CallbackView):
        _define(view, found)
    statuses = ", ".join(f"ExecutionStatus.{one.name}" for one in ends(EXECUTION))
    return "\n\n".join([SHAPES, *found.values(), FINAL.format(statuses=statuses)])


def _define(kind: type[Any], found: dict[str, str]) -> None:
    """Add the definition of *kind* to *found*, behind all that it refers to."""
    if kind.__name__ in found:
        return
    if issubclass(kind, Enum):
        members = [f"    {one.name} = {one.value!r}" for one in kind]
        found[kind.__name__] = "\n".join([f"class {kind.__name__}(Word):", *members])
        return
    base = next(filter(attrs.has, kind.__bases__), None)
    if base is not None:
        _define(base, found)
    own = [one for one in attrs.fields(kind) if not one.inherited]
    lines = [f"    {one.name}: {_annotation(one.type, found)}{_default(one)}" for one in own]
    found[kind.__name__] = "\n".join(
        [
            "@dataclass(frozen=True, kw_only=True)",
            f"class {kind.__name__}({base.__name__}):" if base else f"class {kind.__name__}:",
            *_docstring(kind),
            *lines,
        ]
    )


def _docstring(kind: type[Any]) -> list[str]:
    text = inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    if not text:
        return []
    if "\n" not in text:
        return [f'    """{text}"""\n']
    body = "\n".join(f"    {line}".rstrip() for line in text.splitlines())
    return [f'    """\n{body}\n    """\n']


def _default(one: "attrs.Attribute[Any]") -> str:
    """The default of a field that a response may lack: that of the server's shape, or None."""
    return {attrs.NOTHING: "", (): " = ()"}.get(one.default, " = None")


def _annotation(kind: Any, found: dict[str, str]) -> str:
    """The annotation for *kind*; adds the definitions that it refers to to *found*."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return "Any"
    if origin is Annotated:
        found[args[1]] = f'{args[1]}: TypeAlias = Mapping[str, Any]\n"""{args[2]}."""'
        return str(args[1])
    if origin in (Union, UnionType):
        return " | ".join("None" if one is NoneType else _annotation(one, found) for one in args)
    if origin in (Sequence, Mapping):
        inner = ", ".join(_annotation(one, found) for one in args)
        return f"{origin.__name__}[{inner}]"
    if attrs.has(kind) or issubclass(kind, Enum):
        _define(kind, found)
    return str(kind.__name__)


def waits() -> str:
    """The module of the backoff, without attrs."""
    text = inspect.getsource(backoff).replace("@frozen", "@dataclass(frozen=True)")
    text = text.replace("from attrs import frozen", "from dataclasses import dataclass")
    return text.replace('"""', f'"""\n{HEAD.format(backoff.__name__)}\n\n', 1)


SYNC = {
    "from asyncio import sleep": "from time import sleep",
    "from wfcore_client.in_process import App, InProcess\n": "",
    "Coroutine, ": "",
    "Coroutine[Any, Any, T]": "T",
    "AsyncClient": "Client",
    "AsyncBaseTransport": "BaseTransport",
    "AsyncIterator": "Iterator",
    "asynccontextmanager": "contextmanager",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aread": "read",
    "aiter_lines": "iter_lines",
    "aiter_bytes": "iter_bytes",
    "async ": "",
    "await ": "",
}
"""The words of a program with an event loop, and those of one without."""


def synchronous() -> str:
    """The module of the client for programs without an event loop."""
    text = _without((PACKAGE / "asynchronous.py").read_text(), "in_process")
    body = text[text.index('"""', 3) + 3 :]
    words = "|".join(rf"(?<!\w){re.escape(one)}" for one in SYNC)
    body = re.sub(words, lambda match: SYNC[match[0]], body)
    head = HEAD.format("asynchronous.py")
    return f'"""\nThe client for programs without an event loop.\n\n{head}\n"""{body}'


def _without(text: str, name: str) -> str:
    """*text* without the method *name*."""
    lines = text.splitlines(keepends=True)
    (method,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name
    )
    first = min(one.lineno for one in (method, *method.decorator_list))
    del lines[first - 1 : method.end_lineno]
    return "".join(lines)


MADE = {"shapes.py": shapes, "backoff.py": waits, "synchronous.py": synchronous}


def write() -> None:
    """Write the modules; one that is current is left alone."""
    for name, make in MADE.items():
        path, text = PACKAGE / name, make()
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write()
