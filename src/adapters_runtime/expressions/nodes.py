"""The tree of an expression. Each node computes its value in a `Evaluation`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs
from attrs import field, frozen

from adapters_runtime.expressions.scope import Evaluation, EvaluationFailed, Missing, kind
from wfcore.model.json import Json


@frozen(eq=False)
class Literal:
    """A value written in the expression."""

    content: Json

    def value(self, scope: Evaluation) -> Json:
        return self.content


@frozen(eq=False)
class Name:
    """A top-level name."""

    name: str

    @property
    def label(self) -> str:
        return self.name

    def value(self, scope: Evaluation) -> Json:
        try:
            return scope.names[self.name]
        except KeyError:
            raise Missing(f"{self.name} is not there", self) from None


@frozen(eq=False)
class Get:
    """`of.key` or `of[key]`."""

    of: "Node"
    key: "Node"

    @property
    def label(self) -> str:
        """The path, for messages. A computed key is not shown, since it may be secret."""
        base = self.of.label if isinstance(self.of, Name | Get) else "(…)"
        if not isinstance(self.key, Literal):
            return f"{base}[…]"
        key = self.key.content
        return f"{base}.{key}" if isinstance(key, str) else f"{base}[{key}]"

    def value(self, scope: Evaluation) -> Json:
        of, key = self.of.value(scope), self.key.value(scope)
        try:
            return self._found(of, key)
        except Missing:
            if scope.missing_is_null:
                return None
            raise

    def _found(self, of: Json, key: Json) -> Json:
        if isinstance(of, Mapping):
            if isinstance(key, str) and key in of:
                return of[key]
        elif isinstance(of, list | tuple | str):
            if type(key) is int and -len(of) <= key < len(of):
                item: Json = of[key]
                return item
        else:
            raise Missing(f"{self.label} is not there: it would be in {kind(of)}", self)
        raise Missing(f"{self.label} is not there", self)


@frozen(eq=False)
class Slice:
    """`of[start:stop:step]`. A missing bound is null."""

    of: "Node"
    bounds: "tuple[Node, ...]"

    def value(self, scope: Evaluation) -> Json:
        of = self.of.value(scope)
        bounds: list[Any] = [bound.value(scope) for bound in self.bounds]
        if not isinstance(of, list | tuple | str):
            raise EvaluationFailed(f"a slice is of a list or a text, not of {kind(of)}")
        if not all(bound is None or type(bound) is int for bound in bounds):
            raise EvaluationFailed("the bounds of a slice are whole numbers")
        if any(step is not None and step < 1 for step in bounds[2:]):
            raise EvaluationFailed("the step of a slice is 1 or more")
        return scope.weigh(of[slice(*bounds)])


@frozen(eq=False)
class ListOf:
    items: "tuple[Node, ...]"

    def value(self, scope: Evaluation) -> Json:
        return [item.value(scope) for item in self.items]


@frozen(eq=False)
class ObjectOf:
    keys: "tuple[Node, ...]"
    items: "tuple[Node, ...]"

    def value(self, scope: Evaluation) -> Json:
        keys = [key.value(scope) for key in self.keys]
        if not all(isinstance(key, str) for key in keys):
            raise EvaluationFailed("the keys of an object are texts")
        pairs = zip(keys, self.items, strict=True)
        return {str(key): item.value(scope) for key, item in pairs}


@frozen(eq=False)
class Binary:
    """An operator on two values; *apply* comes from `operators`."""

    left: "Node"
    right: "Node"
    apply: Callable[[Evaluation, Json, Json], Json]

    def value(self, scope: Evaluation) -> Json:
        return scope.weigh(self.apply(scope, self.left.value(scope), self.right.value(scope)))


@frozen(eq=False)
class Unary:
    of: "Node"
    apply: Callable[[Json], Json]

    def value(self, scope: Evaluation) -> Json:
        return self.apply(self.of.value(scope))


@frozen(eq=False)
class Both:
    """`left and right`. The value is that of *left* or of *right*, as with `or`."""

    left: "Node"
    right: "Node"

    def value(self, scope: Evaluation) -> Json:
        return self.left.value(scope) and self.right.value(scope)


@frozen(eq=False)
class Either:
    left: "Node"
    right: "Node"

    def value(self, scope: Evaluation) -> Json:
        return self.left.value(scope) or self.right.value(scope)


@frozen(eq=False)
class Choice:
    """`then if test else otherwise`."""

    test: "Node"
    then: "Node"
    otherwise: "Node"

    def value(self, scope: Evaluation) -> Json:
        return (self.then if self.test.value(scope) else self.otherwise).value(scope)


@frozen(eq=False)
class Filter:
    """`of | name(args)`; *apply* comes from `filters`."""

    of: "Node"
    apply: Callable[..., Json]
    args: "tuple[Node, ...]" = ()
    named: "Mapping[str, Node]" = field(factory=dict)

    def value(self, scope: Evaluation) -> Json:
        of = scope.weigh(self.of.value(scope))
        args = [scope.weigh(arg.value(scope)) for arg in self.args]
        named = {name: scope.weigh(arg.value(scope)) for name, arg in self.named.items()}
        try:
            return scope.weigh(self.apply(scope, of, *args, **named))
        except Missing as error:
            raise Missing(str(error), self) from None


@frozen(eq=False)
class IsDefined:
    """`of is defined`. Only the last name of the path may be missing."""

    of: "Node"

    def value(self, scope: Evaluation) -> Json:
        try:
            self.of.value(scope)
        except Missing as error:
            if error.at is not self.of:
                raise
            return False
        return True


@frozen(eq=False)
class Default:
    """`of | default(fallback, also_when_false)`. Only the last name of the path may be missing."""

    of: "Node"
    fallback: "Node"
    also_when_false: "Node"

    def value(self, scope: Evaluation) -> Json:
        try:
            found = self.of.value(scope)
        except Missing as error:
            if error.at is not self.of:
                raise
            return self.fallback.value(scope)
        if found or not self.also_when_false.value(scope):
            return found
        return self.fallback.value(scope)


Node: TypeAlias = (
    Literal
    | Name
    | Get
    | Slice
    | ListOf
    | ObjectOf
    | Binary
    | Unary
    | Both
    | Either
    | Choice
    | Filter
    | IsDefined
    | Default
)


def walk(node: Node) -> Iterator[Node]:
    """*node* and every node below it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_parts(node))


def _parts(node: Node) -> Iterator[Node]:
    for attribute in attrs.fields(type(node)):
        part = getattr(node, attribute.name)
        if isinstance(part, tuple):
            yield from part
        elif isinstance(part, Mapping):
            yield from part.values()
        elif attrs.has(type(part)):
            yield part
