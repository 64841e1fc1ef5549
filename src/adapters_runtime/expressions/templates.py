"""
Templates: `{{ expressions }}` over JSON, in a subset of the expression language of minijinja.

The minijinja library does not evaluate these expressions. Its binding lets a template use any
amount of memory outside Python's control (`'a' * 10**12` or `list | slice(10**9)` end the whole
process), reads `[unknown]` as `[null]`, calls methods of the data, and returns 1 for 1.0. The tests
compare this implementation with the library wherever both give a result.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import frozen

from adapters_runtime.expressions.nodes import Get, Literal, Name, Node, walk
from adapters_runtime.expressions.parse import parse
from adapters_runtime.expressions.scope import (
    TOO_LONG,
    Evaluation,
    EvaluationFailed,
    Faulty,
    Markdown,
    kind,
    suggestion,
)
from adapters_runtime.expressions.tokens import split
from wfcore.errors import TemplateFailed
from wfcore.model.json import Json, fits
from wfcore.ports.system import Inserted
from wfcore.rules.limits import MIB, TEXT_RESULT

_CACHED_TEXT = 4_096
_SHOWN = 200

Known = Mapping[str, Collection[str] | None]


class MiniJinjaTemplates:
    """The `wfcore.ports.system.Templates` in a subset of minijinja's language."""

    def render(
        self,
        value: Json,
        names: Mapping[str, Json],
        limit: int = TEXT_RESULT,
        inserted: Inserted | None = None,
        *,
        missing_is_null: bool = False,
    ) -> Json:
        """
        Returns *value* with every template in its texts evaluated, also inside lists and objects.

        *inserted* is applied to each text that a template inserts, unless the text went through
        `markdown`. Raises `TemplateFailed` for an unknown name, a wrong type, too much data, a
        result over *limit*, or an integer that does not fit 64 bits.
        """
        if isinstance(value, str) and "{" not in value:
            return value
        try:
            result = _render(value, Evaluation(names, missing_is_null=missing_is_null), inserted)
        except RecursionError:
            raise TemplateFailed(_shown(value), "the data are nested too deeply") from None
        if flaw := _flaw(result, limit):
            raise TemplateFailed(_shown(value), flaw)
        return result

    def problems(self, text: str, known: Known) -> Sequence[str]:
        """The mistakes of *text* whatever the data: syntax, statements, unknown names."""
        found: list[str] = []
        try:
            for piece in split(text):
                if not isinstance(piece, str):
                    found.extend(_unknown(parse(piece), known))
        except Faulty as error:
            found.append(str(error))
        return list(dict.fromkeys(found))


@frozen(eq=False)
class _Template:
    """The plain pieces and expressions of a text, in order."""

    pieces: tuple[str | Node, ...]

    def value(self, scope: Evaluation, inserted: Inserted | None) -> Json:
        if len(self.pieces) == 1 and inserted is None:
            value = _piece(self.pieces[0], scope)
            return str(value) if isinstance(value, Markdown) else value
        return "".join(str(scope.weigh(_in_text(piece, scope, inserted))) for piece in self.pieces)


def _piece(piece: str | Node, scope: Evaluation) -> Json:
    return piece if isinstance(piece, str) else piece.value(scope)


def _in_text(piece: str | Node, scope: Evaluation, inserted: Inserted | None) -> str:
    value = _piece(piece, scope)
    text = scope.text(value)
    if isinstance(piece, str) or inserted is None or isinstance(value, Markdown):
        return text
    return inserted(text)


def _compile(text: str) -> _Template:
    return _Template(
        tuple(piece if isinstance(piece, str) else parse(piece) for piece in split(text))
    )


_compile_cached = lru_cache(maxsize=1_024)(_compile)


def _render(value: Json, scope: Evaluation, inserted: Inserted | None) -> Json:
    if isinstance(value, str):
        return _render_text(value, scope, inserted) if "{" in value else value
    if isinstance(value, Mapping):
        return {key: _render(item, scope, inserted) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_render(item, scope, inserted) for item in value]
    return value


def _render_text(text: str, scope: Evaluation, inserted: Inserted | None) -> Json:
    try:
        compiled = _compile_cached(text) if len(text) <= _CACHED_TEXT else _compile(text)
        return compiled.value(scope, inserted)
    except (Faulty, EvaluationFailed) as error:
        raise TemplateFailed(_shown(text), str(error)) from None


def _shown(value: Json) -> str:
    if not isinstance(value, str):
        return kind(value)
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


def _flaw(result: Json, limit: int) -> str | None:
    """
    Why *result* cannot be stored: the result is over *limit*, or storing would change a number in
    the result.
    """
    left = limit
    waiting: list[Json] = [result]
    while waiting and left >= 0:
        part = waiting.pop()
        if isinstance(part, str):
            left -= len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass"))
            continue
        left -= 1
        if isinstance(part, int):
            if not fits(part):
                return TOO_LONG
        elif isinstance(part, Mapping):
            left -= sum(map(len, part))
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            left -= len(part)
            waiting.extend(part if left >= 0 else ())
    return None if left >= 0 else f"the result is over {limit // MIB} MB"


def _unknown(tree: Node, known: Known) -> Iterable[str]:
    """Messages on the unknown names in *tree*, of the first level and, if literal, the second."""
    for node in walk(tree):
        if isinstance(node, Name) and node.name not in known:
            yield f"unknown name {node.name}; {suggestion(node.name, known)}"
        elif isinstance(node, Get) and isinstance(node.of, Name) and isinstance(node.key, Literal):
            below, key = known.get(node.of.name), node.key.content
            if below is not None and key not in below:
                hint = _suggestion_below(node.of.name, str(key), below)
                yield f"unknown name {node.label}; {hint}"


def _suggestion_below(name: str, key: str, below: Collection[str]) -> str:
    dashed = [word for word in sorted(below) if word.startswith(f"{key}-")]
    if dashed:
        return f'a name with "-" is written {name}["{dashed[0]}"]'
    return suggestion(key, below)
