"""Steps of a server whose locale is not one of UTF-8, or is not there at all. CS-4."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters_runtime.code.environment import is_utf8
from adapters_runtime.code.runner import CodeStepRunner
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import Lines, job, silent

WORD = "Straße — 漢字 😀"
READ = {
    Language.PYTHON: """
import json, os
word = os.environ["WF_VAR_word"]
kept = json.load(open(os.environ["WF_CONTEXT"]))["variables"]["word"]
print(json.dumps([word, kept, f"{word}ü"]))
""",
    Language.JAVASCRIPT: """
const word = process.env.WF_VAR_word;
const text = require("fs").readFileSync(process.env.WF_CONTEXT, "utf8");
console.log(JSON.stringify([word, JSON.parse(text).variables.word, `${word}ü`]));
""",
    Language.TYPESCRIPT: """
import fs from "node:fs";
const word: string = process.env.WF_VAR_word ?? "";
const text: string = fs.readFileSync(process.env.WF_CONTEXT ?? "", "utf8");
console.log(JSON.stringify([word, JSON.parse(text).variables.word, `${word}ü`]));
""",
    Language.BASH: """
kept=$(sed 's/.*"word":"\\([^"]*\\)".*/\\1/' "$WF_CONTEXT")
printf '["%s","%s","%s"]' "$WF_VAR_word" "$kept" "${WF_VAR_word}ü"
""",
    Language.RUBY: """
require "json"
word = ENV["WF_VAR_word"]
kept = JSON.parse(File.read(ENV["WF_CONTEXT"]))["variables"]["word"]
puts [word, kept, "#{word}ü"].to_json
""",
    Language.LUA: """
local word = os.getenv("WF_VAR_word")
local kept = io.open(os.getenv("WF_CONTEXT")):read("a"):match('"word":"([^"]*)"')
print(string.format('["%s","%s","%s"]', word, kept, word .. "ü"))
""",
}


@pytest.fixture(params=["C", "POSIX", "xx_XX.UTF-8"])
async def runner(
    request: pytest.FixtureRequest, tmp_path: Path, files: Any
) -> AsyncIterator[CodeStepRunner]:
    environment = {"LANG": request.param, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    runner = CodeStepRunner(tmp_path, files, lambda: "art_1", environment=environment)
    yield runner
    await runner.close()


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("language", READ)
async def test_text_is_utf8_in_every_language(
    runner: CodeStepRunner, able: Any, language: Language, log: bool
) -> None:
    """Variables, the context file and what is printed, whatever the locale of the server is."""
    able(language)
    for _ in range(2):  # the second one by an interpreter that waited for it
        asked = job(
            READ[language],
            language,
            environment={"WF_VAR_word": WORD},
            context={"variables": {"word": WORD}},
            log=log,
        )
        end = await runner.run(asked, Lines() if log else silent)
        assert end.error is None
        assert end.output == [WORD, WORD, f"{WORD}ü"]


def test_which_locales_are_of_utf8() -> None:
    """By what the machine has, not by the name alone."""
    assert [is_utf8(one) for one in ("C.UTF-8", "C", "POSIX", "", "xx_XX.UTF-8")] == [
        True, False, False, False, False,
    ]  # fmt: skip
