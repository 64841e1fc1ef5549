"""Each of the seven languages through the server: a variable in, an output and a file out."""

import os

import pytest

from wfcore.model.workflow import Language
from wfserver.definitions.read import interpreters

from .site import ApiCaller

SOURCES = {
    Language.PYTHON: """
      import os
      open(os.environ["WF_ARTIFACTS"] + "/x", "w").write("file")
      print(os.environ["WF_VAR_word"].upper())
""",
    Language.JAVASCRIPT: """
      const fs = require("fs");
      fs.writeFileSync(process.env.WF_ARTIFACTS + "/x", "file");
      console.log(process.env.WF_VAR_word.toUpperCase());
""",
    Language.TYPESCRIPT: """
      import * as fs from "node:fs";
      const word: string = process.env.WF_VAR_word ?? "";
      fs.writeFileSync(process.env.WF_ARTIFACTS + "/x", "file");
      console.log(word.toUpperCase());
""",
    Language.BASH: """
      printf file > "$WF_ARTIFACTS/x"
      echo "${WF_VAR_word^^}"
""",
    Language.RUBY: """
      File.write(ENV["WF_ARTIFACTS"] + "/x", "file")
      puts ENV["WF_VAR_word"].upcase
""",
    Language.LUA: """
      local file = io.open(os.getenv("WF_ARTIFACTS") .. "/x", "w")
      file:write("file")
      file:close()
      print(os.getenv("WF_VAR_word"):upper())
""",
}
COMMAND = (
    """[sh, -c, 'printf file > "$WF_ARTIFACTS/x"; echo "$1"', sh, "{{ variables.word | upper }}"]"""
)


@pytest.mark.parametrize("language", Language)
def test_language(ann: ApiCaller, language: Language) -> None:
    """A step in this language runs with its variables and leaves output and file. CS-1, DF-5."""
    state = interpreters().find(language)
    if language is not Language.COMMAND and not state.available:
        missing = f"{language} is missing: {state.cure}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    source = SOURCES.get(language)
    what = f"source: |{source}" if source else f"command: {COMMAND}"
    flow = f"""
variables: {{word: {{type: string}}}}
steps:
  - name: say
    kind: code
    language: {language}
    {what}
"""
    execution_id = ann.start(ann.workflow(flow), word="loud")
    result = ann.result(execution_id)
    assert (result["status"], result["output"]) == ("COMPLETED", "LOUD"), result["error"]
    (file,) = ann.get(f"/api/v1/executions/{execution_id}/artifacts").json()["artifacts"]
    assert ann.site.http.get(file["downloadUrl"]).content == b"file"
