"""What a program's text says, and what its imports cost."""

import ast
import io
import resource
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from pathlib import Path
from statistics import median

_TURNS = 15
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


def code_lines(source: str) -> int:
    """The lines of *source* that are code: no blank ones, no comments, no docstring."""
    tree = ast.parse(source)
    about = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = {
        line
        for one in tokens
        if one.type not in _NO_CODE
        for line in range(one.start[0], one.end[0] + 1)
    }
    return len(code - about)


def foreign_imports(source: str) -> Sequence[str]:
    """The import statements of a program's top level, without the standard library and `stage`."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        else:
            continue
        tops = {name.partition(".")[0] for name in names}
        if not tops & {*sys.stdlib_module_names, "stage"}:
            found.append(ast.unparse(node))
    return found


def names_used(source: str) -> Sequence[str]:
    """`wf.start`, say, for each name that is taken from `import … as wf`: it may load late."""
    tree = ast.parse(source)
    aliases = {
        one.asname for node in tree.body if isinstance(node, ast.Import) for one in node.names
    }
    used = {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id in aliases - {None}
    }
    return sorted(used)


def import_cost(python: Path, source: str) -> tuple[float, int]:
    """
    CPU milliseconds and modules of a program's imports, beyond those of the bare interpreter;
    what it takes from a module that loads its names late counts as imported, too.
    """
    count = "import sys; print(len(sys.modules))"
    code = "\n".join([*foreign_imports(source), *names_used(source), count])
    turns = [(_timed(python, code), _timed(python, count)) for _ in range(_TURNS)]
    cost = median(with_them - without for (with_them, _), (without, _) in turns)
    ((_, most), (_, least)) = turns[0]
    return round(cost, 1), most - least


def _timed(python: Path, code: str) -> tuple[float, int]:
    """CPU milliseconds of *code*, and the number that it prints."""
    before = cpu_ms_of_children()
    ran = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return cpu_ms_of_children() - before, int(ran.stdout)


def cpu_ms_of_children() -> float:
    """What the processes that this one has waited for have used in all."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1_000
