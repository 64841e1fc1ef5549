"""Filters and tests where they are used: do they exist, and do the arguments fit."""

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import TypeVar

from adapters_runtime.expressions import nodes
from adapters_runtime.expressions.filters import FILTERS
from adapters_runtime.expressions.nodes import Literal, Node
from adapters_runtime.expressions.predicates import PREDICATES
from adapters_runtime.expressions.scope import Faulty

T = TypeVar("T")

_INNER: Mapping[str, tuple[int, str, Mapping[str, Callable[..., object]]]] = {
    "map": (0, "filter", FILTERS),
    "select": (0, "test", PREDICATES),
    "reject": (0, "test", PREDICATES),
    "selectattr": (1, "test", PREDICATES),
    "rejectattr": (1, "test", PREDICATES),
}


def filtered(of: Node, name: str, args: tuple[Node, ...], named: Mapping[str, Node]) -> Node:
    """`of | name(args)`. Raises `Faulty`."""
    if name in ("default", "d"):
        return _default(of, args, named)
    apply = _known("filter", name, FILTERS)
    _check_arguments(f"filter {name}", apply, (None, None, *args), named)
    if name in _INNER:
        _check_inner(name, args, named)
    return nodes.Filter(of, apply, args, named)


def tested(of: Node, name: str, args: tuple[Node, ...]) -> Node:
    """`of is name(args)`. Raises `Faulty`."""
    if name == "defined":
        return nodes.Defined(of)
    if name == "undefined":
        return nodes.Unary(nodes.Defined(of), lambda value: not value)
    apply = _known("test", name, PREDICATES)
    _check_arguments(f"test {name}", apply, (None, *args), {})
    return nodes.Test(of, apply, args)


def suggestion(word: str, known: Collection[str]) -> str:
    """The end of a message about an unknown *word*: what may be meant, else what there is."""
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(sorted(known))}" if known else "none is known here"


def _default(of: Node, args: tuple[Node, ...], named: Mapping[str, Node]) -> Node:
    if named or len(args) > 2:
        raise Faulty("filter default: takes a value, and true to replace false values too")
    fallback, also_when_false = (*args, Literal(""), Literal(False))[:2]
    if len(args) == 1:
        also_when_false = Literal(False)
    return nodes.Default(of, fallback, also_when_false)


def _known(what: str, name: str, table: Mapping[str, T]) -> T:
    if name not in table:
        raise Faulty(f"there is no {what} {name!r}; {suggestion(name, table)}")
    return table[name]


def _check_arguments(
    what: str, apply: Callable[..., object], args: tuple[object, ...], named: Mapping[str, Node]
) -> None:
    try:
        inspect.signature(apply).bind(*args, **named)
    except TypeError as error:
        raise Faulty(f"{what}: {error}") from None


def _check_inner(name: str, args: tuple[Node, ...], named: Mapping[str, Node]) -> None:
    """`map` and its like call a filter or test by name: that one is checked here too."""
    at, what, table = _INNER[name]
    if len(args) <= at:
        return
    inner = args[at]
    if not isinstance(inner, Literal) or not isinstance(inner.content, str):
        raise Faulty(f"filter {name}: the name of the {what} is written as a text")
    apply = _known(what, inner.content, table)
    given = (None, None) if table is FILTERS else (None,)
    _check_arguments(f"{what} {inner.content}", apply, (*given, *args[at + 1 :]), named)
