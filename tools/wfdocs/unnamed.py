"""
What the public surface lacks: names for the classes in its signatures, and docstrings.

A program that calls a public function must be able to write down its arguments and its result.
Base classes are no part of a signature; type variables have no meaning outside of theirs.
"""

import ast
from collections.abc import Iterator
from functools import cache

from wfdocs import surface

Place = tuple[str, str]
"""The module that defines a name, and the name."""

OURS = ("wfcore", "adapters_", "wfserver")
PUBLIC_MODULES = ("wfcore_client.shapes",)
"""The modules whose classes are public and not listed: the shapes of the interface's documents."""

PASSED_ON = {("adapters_http.request", "Context")}
"""The classes whose values the bundled server alone reads: it passes them from part to part."""


def unnamed() -> dict[Place, list[str]]:
    """The classes without a public name, each with the public names whose signatures have them."""
    places = homes() | PASSED_ON
    found: dict[Place, list[str]] = {}
    for module, name in _public():
        home, defined_as = _home(module, name)
        node = surface.definitions(home).get(defined_as)
        for annotation in _annotations(node) if node else ():
            for place in _places(home, annotation):
                if place not in places and place[0] not in PUBLIC_MODULES:
                    found.setdefault(place, []).append(name)
    return found


def undescribed() -> list[Place]:
    """The public classes and functions without a docstring."""
    nodes = {place: surface.definitions(place[0]).get(place[1]) for place in homes()}
    described = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [
        place
        for place, node in sorted(nodes.items())
        if isinstance(node, described) and not ast.get_docstring(node)
    ]


def homes() -> set[Place]:
    """The places that define the public names."""
    return {_home(module, name) for module, name in _public()}


def _public() -> Iterator[Place]:
    for module in (*surface.LISTED, "wfcore.testing"):
        for home, names in surface.exports(module).items():
            yield from ((home, name) for name in names)
    for module in surface.WHOLE_MODULES:
        yield from ((module, name) for name in surface.definitions(module) if name[0] != "_")
    for module, listed in surface.ADAPTERS.items():
        yield from ((module, name) for name in listed)


def _annotations(node: ast.stmt) -> Iterator[ast.expr]:
    match node:
        case (
            ast.FunctionDef(args=args, returns=returns)
            | ast.AsyncFunctionDef(args=args, returns=returns)
        ):
            named = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
            yield from (one.annotation for one in named if one and one.annotation)
            if returns:
                yield returns
        case ast.ClassDef(body=body):
            for member in body:
                match member:
                    case ast.FunctionDef() | ast.AsyncFunctionDef():
                        if surface.is_public(member) and not member.name.startswith("test_"):
                            yield from _annotations(member)
                    case ast.AnnAssign(target=ast.Name(id=name)) if name[0] != "_":
                        yield member.annotation
        case ast.AnnAssign(annotation=annotation):
            yield annotation
        case ast.Assign(value=ast.BinOp() | ast.Subscript() as value):  # an alias of types
            yield value


def _places(module: str, annotation: ast.expr) -> Iterator[Place]:
    """The classes and aliases of ours in an annotation of *module*."""
    for node in ast.walk(annotation):
        match node:
            case ast.Name(id=name) | ast.Constant(value=str(name)):
                home, defined_as = _home(module, name)
                if home.startswith(OURS) and _is_class_or_alias(home, defined_as):
                    yield home, defined_as


def _is_class_or_alias(module: str, name: str) -> bool:
    match surface.definitions(module).get(name):
        case ast.ClassDef():
            return True
        case ast.Assign(value=ast.BinOp() | ast.Subscript()):
            return True
        case _:
            return False


@cache
def _home(module: str, name: str) -> Place:
    """The place that defines *name*, which *module* may have imported."""
    for node in ast.walk(surface.tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(OURS):
            for one in node.names:
                if (one.asname or one.name) == name and one.name in surface.definitions(
                    node.module
                ):
                    return _home(node.module, one.name)
    return module, name
