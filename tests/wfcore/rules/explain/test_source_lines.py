"""What an error says of a step's code: the texts are those of real interpreters."""

import pytest

from wfcore.model.work import Language
from wfcore.rules.explain.source_lines import brief, cause_of, failed_lines

PYTHON = """exited with status 1: Traceback (most recent call last):
  File "/step/main.py", line 4, in <module>
    print(f({}))
          ^^^^^
  File "/step/main.py", line 3, in f
    return x["a"]
           ~^^^^^
KeyError: 'a'"""
NODE = """exited with status 1: /step/main.js:2
throw new Error("oops");
^

Error: oops
    at Object.<anonymous> (/step/main.js:2:7)
    at Module._compile (node:internal/modules/cjs/loader:1872:14)

Node.js v24.19.0"""
BASH = "exited with status 3: /step/main.sh: line 2: nope_cmd: command not found"
RUBY = "exited with status 1: /step/main.rb:2:in `<main>': oops (RuntimeError)"
LUA = """exited with status 1: /usr/bin/lua5.4: /step/main.lua:2: oops
stack traceback:
	[C]: in function 'error'
	/step/main.lua:2: in main chunk"""
SOURCE = "one\ntwo\nthree\nfour\nfive\nsix\n"


@pytest.mark.parametrize(
    ("language", "error", "line", "cause"),
    [
        (Language.PYTHON, PYTHON, 3, "KeyError: 'a'"),
        (Language.JAVASCRIPT, NODE, 2, "Error: oops"),
        (Language.TYPESCRIPT, NODE, 2, "Error: oops"),
        (Language.BASH, BASH, 2, "/step/main.sh: line 2: nope_cmd: command not found"),
        (Language.RUBY, RUBY, 2, "/step/main.rb:2:in `<main>': oops (RuntimeError)"),
        (Language.LUA, LUA, 2, "/usr/bin/lua5.4: /step/main.lua:2: oops"),
    ],
)
def test_the_line_that_failed_is_found_in_every_language(language, error, line, cause) -> None:
    """The error of each interpreter names a line of the step's code, and its cause. XP-6."""
    found = failed_lines(language, SOURCE, error)
    assert [one.number for one in found if one.is_cause] == [line]
    assert found[0].number == max(line - 2, 1)
    assert [one.text for one in found] == SOURCE.splitlines()[found[0].number - 1 : line + 2]
    assert cause_of(error) == cause
    assert brief(error) == f"{error.partition(': ')[0]}: {cause}"


@pytest.mark.parametrize(
    "error", ["no answer", "exited with status 1: /step/main.py:99", "/step/main.sh: line 0: x", ""]
)
def test_an_error_without_a_known_line_shows_no_code(error) -> None:
    """A line that the code does not have is not shown. XP-6."""
    assert failed_lines(Language.BASH, SOURCE, error) == ()


def test_an_error_that_has_no_exit_status_is_its_first_line() -> None:
    """An error of a worker or a model is shown by its first line. XP-6."""
    assert brief("ValueError: no score\n  line 12") == "ValueError: no score"
    assert brief("") == ""
