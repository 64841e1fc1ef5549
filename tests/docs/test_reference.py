"""The reference is written from the code, and nothing of the code is missing in it."""

import re
from pathlib import Path

import pytest
import yaml

from adapters_http.routes import ROUTES
from wfcore.errors import InvalidDefinition
from wfdocs import commands, core, http, reference, specification
from wfdocs.markdown import breakable
from wfdocs.rules import ids, places, rules
from wfserver.cli import COMMANDS
from wfserver.definitions.read import checked
from wfserver.settings.table import KNOWN

from .pages import DOCS, ROOT, blocks

IDS = {rule.id for rule in rules()}


def test_every_sentence_leads_somewhere() -> None:
    """Each sentence of the specification names rules that exist, or a place that is there."""
    for one in specification.sentences():
        assert one.rules or one.places, one.text
        assert set(one.rules) <= IDS, one.text
    assert "  - lives in `src" in specification.page()  # it looks every place up


def test_every_rule_of_the_specification_has_its_sentence() -> None:
    """What a rule says that it has from the specification is found from there."""
    cited = {id for one in specification.sentences() for id in one.rules}
    assert {rule.id for rule in rules() if "API:" in rule.where} <= cited


def test_each_rule_is_shown_with_code_and_test() -> None:
    """The page of rules names a place in the code and one in the tests for each."""
    text = core.rules_page()
    for rule in rules():
        section = text.partition(f"### {rule.id}\n")[2].partition("\n(rule-")[0]
        assert "lives in `src/" in section, rule.id
        assert "tested in `tests/" in section, rule.id


def test_places_are_where_they_are_said_to_be(tmp_path: Path) -> None:
    """The line that is given cites the rule."""
    for id, found in places("src").items():
        for place in found:
            line = (ROOT / place.path).read_text().splitlines()[place.line - 1]
            assert id in ids(line)


def test_every_route_and_shape_is_shown() -> None:
    """The page of routes has each row of the table, and a link never leads nowhere."""
    text = http.routes_page()
    for route in ROUTES:
        assert f"`{route.method} {route.path}`" in text
    anchors = set(re.findall(r"\(#([\w-]+)\)", text))
    assert anchors <= set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def test_every_command_and_its_options_are_shown() -> None:
    """The page of commands has each of them."""
    text = commands.cli_page()
    for name in COMMANDS:
        assert f"## `wfcore {name}" in text
    assert "--scope" in text


def test_long_names_may_break_on_a_phone() -> None:
    """Behind a joint of a name in code, nowhere in text; the id of a rule stays whole."""
    page = '<p>a_b <span class="pre">WFCORE_DATA</span> <a href="a_b">EX-12</a></p>'
    assert breakable(page) == (
        '<p>a_b <span class="pre">WFCORE_<wbr>DATA</span> '
        '<a href="a_b"><span class="whole">EX-12</span></a></p>'
    )


def test_every_setting_is_told_to_operators() -> None:
    """What the program reads from the environment stands in the operator's table, and no more."""
    assert commands.settings_read() == set(KNOWN)


def test_the_reference_is_written_whole(tmp_path: Path) -> None:
    """Every page has a title and goes into the contents; what did not change is left alone."""
    reference.write(tmp_path)
    contents = (DOCS / "index.md").read_text()
    before = {}
    for name in reference.PAGES:
        path = tmp_path / f"{name}.md"
        assert path.read_text().startswith("# ")
        assert f"\nreference/{name}\n" in contents
        before[name] = path.stat().st_mtime_ns
    reference.write(tmp_path)
    assert before == {name: (tmp_path / f"{name}.md").stat().st_mtime_ns for name in before}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_definitions_in_the_documentation_are_accepted(page: Path) -> None:
    """Every whole definition that a page shows is one."""
    for block in blocks(page):
        if block.language != "yaml" or block.note.startswith("not run:"):
            continue
        written = yaml.safe_load(block.text)
        if isinstance(written, dict) and {"name", "steps"} <= written.keys():
            try:
                checked(block.text.encode(), f"{page.name}:{block.line}", runs_here=False)
            except InvalidDefinition as mistakes:
                pytest.fail(str(mistakes))
