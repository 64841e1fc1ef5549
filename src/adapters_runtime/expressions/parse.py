"""
The parser from tokens to a tree, with the precedence of minijinja.

Features of minijinja that are not supported (`~`, `**`, most tests after `is`) are refused by name,
with the text to write instead.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from adapters_runtime.expressions import nodes
from adapters_runtime.expressions.filters import filtered
from adapters_runtime.expressions.nodes import Literal, Node
from adapters_runtime.expressions.operators import COMPARISONS, PRODUCTS, SUMS, Operator, negate
from adapters_runtime.expressions.scope import Faulty
from adapters_runtime.expressions.tokens import CONSTANTS, LEAST, Token, value_of

MAX_DEPTH = 20
"""The greatest nesting of brackets, `not` and `-`."""

_RESERVED = {"and", "or", "not", "is", "in", "if", "else"}
_INSTEAD = {
    "~": "put two templates side by side, or use join",
    "**": "multiply",
    "=": "to compare, write ==",
}
T = TypeVar("T")


def parse(tokens: list[Token]) -> Node:
    """The tree of one expression. Raises `Faulty`."""
    parser = _Parser(tokens)
    node = parser.choice()
    if parser.now.kind != "end":
        text = parser.now.text
        instead = f"; {_INSTEAD[text]}" if text in _INSTEAD else ""
        raise Faulty(f"unexpected {text!r} after the expression{instead}")
    return node


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        """Consume and return the next token. The token that marks the end is never consumed."""
        token = self.now
        self.at += token.kind != "end"
        return token

    def takes(self, *texts: str) -> str | None:
        """Consume the next token if its text is one of *texts*, and return the text."""
        if self.now.kind in ("op", "name") and self.now.text in texts:
            return self.take().text
        return None

    def want(self, text: str) -> None:
        if not self.takes(text):
            raise Faulty(f"expected {text!r} before {self.now.text!r}")

    def choice(self) -> Node:
        then = self.either()
        while self.takes("if"):
            test = self.either()
            if not self.takes("else"):
                raise Faulty("an `if` needs its `else`")
            then = nodes.Choice(test, then, self.choice())
        return then

    def either(self) -> Node:
        left = self.both()
        while self.takes("or"):
            left = nodes.Either(left, self.both())
        return left

    def both(self) -> Node:
        left = self.inverse()
        while self.takes("and"):
            left = nodes.Both(left, self.inverse())
        return left

    def inverse(self) -> Node:
        if self.takes("not"):
            return self.deeper(lambda: nodes.Unary(self.inverse(), lambda value: not value))
        return self.comparison()

    def comparison(self) -> Node:
        left = self.chain(SUMS, self.products)
        sign = self.comparator()
        if sign is None:
            return left
        node = nodes.Binary(left, self.chain(SUMS, self.products), COMPARISONS[sign])
        if self.comparator():
            raise Faulty("comparisons do not chain; join them with `and`")
        return node

    def comparator(self) -> str | None:
        if self.now.text == "not" and self.tokens[self.at + 1].text == "in":
            self.at += 2
            return "not in"
        return self.takes(*COMPARISONS)

    def chain(self, signs: Mapping[str, Operator], part: Callable[[], Node]) -> Node:
        left = part()
        while sign := self.takes(*signs):
            left = nodes.Binary(left, part(), signs[sign])
        return left

    def products(self) -> Node:
        return self.chain(PRODUCTS, self.unary)

    def unary(self) -> Node:
        node = self.signed()
        while sign := self.takes("|", "is"):
            node = self.filter(node) if sign == "|" else self.test(node)
        return node

    def signed(self) -> Node:
        if self.takes("-"):
            if self.now.text == LEAST:
                return Literal(-int(self.take().text))
            return self.deeper(lambda: nodes.Unary(self.signed(), negate))
        return self.postfix(self.primary())

    def postfix(self, node: Node) -> Node:
        while sign := self.takes(".", "[", "("):
            if sign == "(":
                raise Faulty("calls are not supported; use filters (`value | filter`)")
            node = self.attribute(node) if sign == "." else self.subscript(node)
        return node

    def attribute(self, node: Node) -> Node:
        token = self.take()
        if token.kind not in ("name", "int"):
            raise Faulty(f"expected a name after '.', not {token.text!r}")
        return nodes.Get(node, Literal(token.text if token.kind == "name" else int(token.text)))

    def subscript(self, node: Node) -> Node:
        bounds = [self.bound()]
        while len(bounds) < 3 and self.takes(":"):
            bounds.append(self.bound())
        self.want("]")
        if len(bounds) > 1:
            return nodes.Slice(node, tuple(bound or Literal(None) for bound in bounds))
        if bounds[0] is None:
            raise Faulty("[] is empty")
        return nodes.Get(node, bounds[0])

    def bound(self) -> Node | None:
        """An index, or a bound of a slice; None if the bound is left out."""
        return None if self.now.text in (":", "]") else self.deeper(self.choice)

    def filter(self, node: Node) -> Node:
        name = self.take().text
        args, named = self.arguments() if self.takes("(") else ((), {})
        return filtered(node, name, args, named)

    def test(self, node: Node) -> Node:
        inverted = self.takes("not")
        if not self.takes("defined"):
            name = self.now.text
            raise Faulty(f"unknown test {name!r}; known: defined, not defined; else compare by ==")
        found = nodes.IsDefined(node)
        return nodes.Unary(found, lambda value: not value) if inverted else found

    def arguments(self) -> tuple[tuple[Node, ...], dict[str, Node]]:
        args: list[Node] = []
        named: dict[str, Node] = {}
        for name, node in self.until(")", self.argument):
            if name:
                named[name] = node
            elif named:
                raise Faulty("arguments with a name come last")
            else:
                args.append(node)
        return tuple(args), named

    def argument(self) -> tuple[str, Node]:
        name = ""
        if self.now.kind == "name" and self.tokens[self.at + 1].text == "=":
            name = self.take().text
            self.take()
        return name, self.deeper(self.choice)

    def primary(self) -> Node:
        token = self.take()
        if token.kind in ("int", "float", "string") or token.text in CONSTANTS:
            return Literal(value_of(token))
        if token.kind == "name" and token.text not in _RESERVED:
            return nodes.Name(token.text)
        return self.bracketed(token)

    def bracketed(self, token: Token) -> Node:
        if token.text == "(":
            node = self.deeper(self.choice)
            self.want(")")
            return node
        if token.text == "[":
            return nodes.ListOf(tuple(self.until("]", lambda: self.deeper(self.choice))))
        if token.text == "{":
            pairs = self.until("}", self.pair)
            return nodes.ObjectOf(tuple(key for key, _ in pairs), tuple(item for _, item in pairs))
        raise Faulty(
            "the expression is incomplete" if token.kind == "end" else f"unexpected {token.text!r}"
        )

    def pair(self) -> tuple[Node, Node]:
        key = self.deeper(self.choice)
        self.want(":")
        return key, self.deeper(self.choice)

    def until(self, closing: str, part: Callable[[], T]) -> list[T]:
        """The comma-separated parts before *closing*."""
        parts: list[T] = []
        while not self.takes(closing):
            parts.append(part())
            if self.now.text != closing:
                self.want(",")
        return parts

    def deeper(self, part: Callable[[], T]) -> T:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Faulty(f"the expression is nested deeper than {MAX_DEPTH}")
        found = part()
        self.depth -= 1
        return found
