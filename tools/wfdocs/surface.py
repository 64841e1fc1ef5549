"""
The public surface as text, read from the sources: one line for each name and each member.

    python -m wfdocs.surface     (in tools/) writes it to tests/docs/public_surface.txt
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
SNAPSHOT = SRC.parent / "tests/docs/public_surface.txt"

GROUPS = (
    "wfcore",
    "wfcore.accounts",
    "wfcore.workflows",
    "wfcore.webhooks",
    "wfcore.operating",
    "wfcore.worker",
    "wfcore.ports",
    "wfcore.rules",
)
"""The parts of the core's façade: each public name of the core is in one of them."""

LISTED = (*GROUPS, "wfcore.memory")
"""The modules whose stubs list their public names."""

WHOLE_MODULES = (
    "wfcore.errors",
    "wfcore.machine",
    "wfcore.rules.execution.machine",
    "wfcore_client.calls",
    "wfcore_client.errors",
)
"""The modules of which every name without underscore is public, besides the stubs."""

ADAPTERS = {
    "adapters_store": ("Opened", "OpenOwn", "open_store"),
    "adapters_store.sql.schema": ("Schema",),
    "adapters_http.tracing": ("RequestTracing",),
    "adapters_runtime.ai.providers": ("Provider", "ProviderKind"),
    "adapters_runtime.sandbox.isolation_level": ("Isolation", "Level"),
    "adapters_http.app": ("Application", "create_app"),
    "adapters_http.config": (
        "ExampleDefinition",
        "HealthCheck",
        "HttpConfig",
        "Login",
        "Network",
        "ServingStage",
        "SignOn",
    ),
    "adapters_runtime.engine.journal": ("ExecutionChange",),
    "adapters_runtime.engine.spans": ("Span", "Value"),
    "adapters_store.hints": ("Channel", "ChannelHints"),
    "adapters_runtime.code.runner": ("CodeStepRunner", "StepLimits"),
    "adapters_runtime.engine.worker": ("Worker",),
    "adapters_runtime.passwords": ("Argon2Passwords",),
    "adapters_runtime.engine.scheduler": ("Scheduler",),
    "adapters_runtime.cron": ("CronCalendar",),
    "adapters_runtime.system": ("SystemClock", "SystemIds", "SystemTokens"),
    "adapters_runtime.expressions.templates": ("Known", "MiniJinjaTemplates"),
    "adapters_runtime.engine.wakeups": ("Wakeups",),
    "wfcore_client.asynchronous": ("AsyncClient",),
    "wfcore_client.in_process": ("App",),
    "wfcore_client.backoff": ("Backoff",),
    "wfcore_client.callbacks": ("CallbackRefused", "verify_callback"),
    "wfcore_client.synchronous": ("Client",),
    "wfserver.compose": ("System", "open_system"),
    "wfserver.embedding.blocking": ("Handle", "in_memory", "on_sqlite"),
    "wfserver.definitions.read": ("checked", "read_definition"),
    "wfserver.serving.engine": ("engine", "new_runner", "runner_of"),
    "wfserver.serving.processes": ("MetricsOfAll", "ServerProcess"),
    "wfserver.serving.serve": ("ServerInfo", "run"),
    "wfserver.serving.traces": ("OutgoingCall", "Spans", "Traces"),
    "wfserver.doctor.isolation": ("IsolationReport",),
    "wfserver.settings.channels": ("NoticeSettings",),
    "wfserver.settings.record": ("Settings", "settings_from"),
    "wfserver.settings.sharing": ("Role",),
    "wfserver.settings.sign_on": ("SignOnSettings",),
    "wfserver.settings.steps": ("StepSettings",),
}
"""The names of the adapters that embedders may rely on."""


def surface() -> str:
    """Every public name with its signature, sorted by module."""
    lines = [*exported(), *whole(), *kit(), *adapters()]
    return "\n".join(lines) + "\n"


def exported() -> Iterator[str]:
    """The public names of the packages with stubs, such as `wfcore` and `wfcore.memory`."""
    for package in LISTED:
        for module, names in exports(package).items():
            yield from _described(module, names, package)


def exports(package: str = "wfcore") -> dict[str, list[str]]:
    """The names of the stub of *package* by the module that defines them; no packages below it."""
    found: dict[str, list[str]] = {}
    for node in stub(package).body:
        if isinstance(node, ast.ImportFrom) and node.module != "wfcore":
            found.setdefault(str(node.module), []).extend(one.name for one in node.names)
    return found


def whole() -> Iterator[str]:
    """The names of the modules that are public as a whole."""
    for module in WHOLE_MODULES:
        names = [name for name in definitions(module) if not name.startswith("_")]
        yield from _described(module, names, module)


def kit() -> Iterator[str]:
    """The public names of `wfcore.testing`, without the tests of contracts, which may grow."""
    for node in stub("wfcore.testing").body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("wfcore.testing."):
            names = [one.name for one in node.names]
            lines = _described(str(node.module), names, "wfcore.testing")
            yield from (line for line in lines if ".test_" not in line)


def adapters() -> Iterator[str]:
    """The listed names of the adapters."""
    for module, names in ADAPTERS.items():
        yield from _described(module, names, module)


def _described(module: str, names: Iterable[str], shown_as: str) -> Iterator[str]:
    found = definitions(module)
    for name in names:
        if name not in found:
            raise LookupError(f"{module} has no {name}")
        yield from _lines(f"{shown_as}.{name}", found[name])


@cache
def definitions(module: str) -> dict[str, ast.stmt]:
    """The top-level definitions of a module by name, including names that it re-exports."""
    found: dict[str, ast.stmt] = {}
    for node in tree(module).body:
        match node:
            case ast.ImportFrom(module=str(part)):
                below = part.startswith(f"{module}.")
                passed = {one.name for one in node.names if below or one.asname == one.name}
                if passed:
                    found |= {name: of for name, of in definitions(part).items() if name in passed}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = node
            case ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
    return found


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(_source(module, ".py").read_text())


def stub(module: str) -> ast.Module:
    """The syntax tree of the stub of a module or package."""
    return ast.parse(_source(module, ".pyi").read_text())


def _source(module: str, suffix: str) -> Path:
    path = SRC / module.replace(".", "/")
    return path / f"__init__{suffix}" if path.is_dir() else path.with_suffix(suffix)


def _lines(name: str, node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield f"{name}{signature(node)}"
        case ast.ClassDef():
            yield from _class_lines(name, node)
        case ast.AnnAssign(annotation=annotation):
            yield f"{name}: {ast.unparse(annotation)}"
        case _:
            yield name


def _class_lines(name: str, node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield f"{name}({bases})" if bases else name
    for member in node.body:
        match member:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if is_public(member):
                yield f"{name}.{member.name}{_member(member)}"
            case ast.AnnAssign(target=ast.Name(id=field)) if not field.startswith("_"):
                default = f" = {ast.unparse(member.value)}" if member.value else ""
                yield f"{name}.{field}: {ast.unparse(member.annotation)}{default}"
            case ast.Assign(targets=[ast.Name(id=field)]) if not field.startswith("_"):
                yield f"{name}.{field} = {ast.unparse(member.value)}"


def is_public(member: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether programs call the method; Hypothesis alone calls the rules of a state machine."""
    drawn = any(ast.unparse(one).startswith("rule(") for one in member.decorator_list)
    return member.name == "__init__" or not (member.name.startswith("_") or drawn)


def _member(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if any(ast.unparse(one) == "property" for one in node.decorator_list):
        return f": {ast.unparse(node.returns) if node.returns else 'Any'}"
    return signature(node)


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The arguments and the result of a function, as in the source."""
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args))
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    waits = " (async)" if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"({arguments}){returns}{waits}"


if __name__ == "__main__":
    SNAPSHOT.write_text(surface())
