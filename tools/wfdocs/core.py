"""The pages about the core: rules with their places, vocabulary, public names."""

import ast
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby, pairwise

from wfcore import errors
from wfcore.model import access, approval, event, execution, explanation, webhook, workflow
from wfdocs import surface
from wfdocs.markdown import code, first_paragraph, table
from wfdocs.rules import Place, Rule, places, rules

_MOST_PLACES = 4

VOCABULARY: tuple[type[StrEnum], ...] = (
    execution.ExecutionStatus,
    execution.StepStatus,
    execution.ReasonCode,
    execution.TriggerSource,
    approval.ApprovalStatus,
    approval.DecisionSource,
    approval.DecisionOutcome,
    event.EventKind,
    explanation.Why,
    webhook.WebhookStatus,
    webhook.DisabledReason,
    webhook.AuthMode,
    access.Scope,
    access.Tier,
    access.AccountStatus,
    access.Permission,
    workflow.Language,
    workflow.VariableType,
    workflow.ColumnType,
    errors.AuthReason,
)


def rules_page() -> str:
    """The page of rules, each with the places that implement and test it."""
    parts = [
        "# Where each rule is kept\n\n"
        "Written from [the list of rules](../rules.md) and from the citations in the code and in "
        "the tests. A test fails when a rule is cited nowhere.\n"
    ]
    for group, found in groupby(rules(), key=lambda rule: rule.group):
        parts += [f"## {group}\n", *map(_rule, found)]
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    lives = "".join(f"- lives in {code(one)}\n" for one in of_rule("src", rule.id))
    tested = "".join(f"- tested in {code(one)}\n" for one in of_rule("tests", rule.id))
    return (
        f"(rule-{rule.id.lower()})=\n### {rule.id}\n\n{rule.sentence}\n\n*{rule.where}*\n\n"
        f"{lives}{tested}"
    )


def of_rule(folder: str, id: str) -> list[Place]:
    """The first places of a rule, one for each function, sorted by `_rank`."""
    found = {(one.path, one.symbol): one for one in reversed(places(folder).get(id, []))}
    return sorted(found.values(), key=_rank)[:_MOST_PLACES]


def _rank(place: Place) -> tuple[bool, bool]:
    """The rank of a place: code before tests, a function before a whole file."""
    return "/testing/" in place.path, not place.symbol


def vocabulary_page() -> str:
    """The page of all enumerations with their values."""
    parts = ["# Vocabulary\n\nThe enumerations of the core, as the wire spells them.\n"]
    for kind in VOCABULARY:
        texts = dict(_members(kind))
        about = first_paragraph(kind.__doc__) if kind.__doc__ else ""
        rows = [(code(member.value), texts.get(member.name, "")) for member in kind]
        parts.append(f"## {kind.__name__}\n\n{about}\n\n{table(('Value', 'Meaning'), rows)}")
    return "\n".join(parts)


def _members(kind: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """The members of an enumeration that have a text below them."""
    node = surface.definitions(kind.__module__)[kind.__name__]
    body = node.body if isinstance(node, ast.ClassDef) else []
    for one, following in pairwise(body):
        match one, following:
            case (
                ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, first_paragraph(text)


def public_page() -> str:
    """The page of public names with their signatures and docstrings."""
    parts = [
        "# Public names\n\n"
        "Written from the sources. What is promised about them: "
        "[Compatibility](../compatibility.md).\n"
    ]
    for package in surface.LISTED:
        parts.append(f"## {code(f'from {package} import …')}\n")
        for module, names in surface.exports(package).items():
            parts += [f"### {code(module)}\n", _listing(module, names)]
    parts.append("## Modules that are public as a whole\n")
    for module in surface.WHOLE_MODULES:
        names = [name for name in surface.definitions(module) if not name.startswith("_")]
        parts += [f"### {code(module)}\n", _listing(module, names)]
    parts.append("## Parts to put together\n")
    for module, listed in surface.ADAPTERS.items():
        parts += [f"### {code(module)}\n", _listing(module, listed)]
    return "\n".join(parts)


def _listing(module: str, names: object) -> str:
    assert isinstance(names, list | tuple)
    found = surface.definitions(module)
    return "".join(f"- {_described(name, found[name])}\n" for name in names)


def _described(name: str, node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{code(name + surface.signature(node))}: {first_paragraph(ast.get_docstring(node))}"
    if isinstance(node, ast.ClassDef):
        return f"{code(name)}: {first_paragraph(ast.get_docstring(node))}".rstrip(": ")
    return code(name)
