"""
Writes the parts of `wfcore_client` that are made from something else.

    python client/generate.py            write them
    python client/generate.py --check    name those that are not current; exit status 1

- `shapes.py`, from the attrs classes of `wfcore.wire` that the routes for keys return: the client
  needs no attrs, no cattrs and no core.
- `backoff.py`, from `wfcore.rules.backoff`.
- `synchronous.py`, from `asynchronous.py`: the same without `async` and `await`. Decision 111.
"""

import ast
import inspect
import re
import subprocess
import sys
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

PACKAGE = Path(__file__).parents[1] / "src" / "wfcore_client"
BY_KEY = (Auth.KEY, Auth.KEY_AFTER_BODY, Auth.TRIGGER)
RUFF = Path(sys.executable).with_name("ruff")

HEAD = "Written by client/generate.py from {}: do not edit."

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
    '''A constant of the API. One that only a newer server knows is kept as it came.'''

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
    """The module of shapes: what a definition refers to stands before it."""
    views = {route.returns for route in ROUTES if route.auth in BY_KEY and route.returns}
    found: dict[str, str] = {}
    for view in (*sorted(views, key=lambda one: one.__name__), EventView, CallbackView):
        _define(view, found)
    statuses = ", ".join(f"ExecutionStatus.{one.name}" for one in ends(EXECUTION))
    return "\n\n".join([SHAPES, *found.values(), FINAL.format(statuses=statuses)])


def _define(kind: type[Any], found: dict[str, str]) -> None:
    """Add the definition of *kind* to *found*, after all that it needs."""
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
    """What a field has that is left out of a response: what the server's shape has, or None."""
    return {attrs.NOTHING: "", (): " = ()"}.get(one.default, " = None")


def _annotation(kind: Any, found: dict[str, str]) -> str:
    """How *kind* is written in the module; what it needs is in *found* then."""
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
    """The law of waiting, without attrs."""
    text = inspect.getsource(backoff).replace("@frozen", "@dataclass(frozen=True)")
    text = text.replace("from attrs import frozen", "from dataclasses import dataclass")
    return text.replace('"""', f'"""\n{HEAD.format(backoff.__name__)}\n\n', 1)


SYNC = {
    "from asyncio import sleep": "from time import sleep",
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
"""What is written otherwise without an event loop."""


def synchronous() -> str:
    """The client for programs without an event loop."""
    text = _without((PACKAGE / "asynchronous.py").read_text(), "in_process")
    body = text[text.index('"""', 3) + 3 :]
    words = "|".join(rf"(?<!\w){re.escape(one)}" for one in SYNC)
    body = re.sub(words, lambda match: SYNC[match[0]], body)
    head = HEAD.format("asynchronous.py")
    return f'"""\nThe client for programs without an event loop.\n\n{head}\n"""\n{body}'


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


def formatted(name: str, text: str) -> str:
    """*text* as the formatter and the order of imports want it."""
    fixes = ("check", "--fix-only", "--unsafe-fixes", "--select=I,F401,UP028")
    for command in (fixes, ("format",)):
        words = (RUFF, *command, "--quiet", f"--stdin-filename={PACKAGE / name}", "-")
        run = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
        text = run.stdout
    return text


def main() -> int:
    """Write the files; with `--check` only name those that are not current."""
    made = {PACKAGE / name: formatted(name, make()) for name, make in MADE.items()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(path.relative_to(PACKAGE.parents[1]))
        if "--check" not in sys.argv:
            path.write_text(made[path])
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
