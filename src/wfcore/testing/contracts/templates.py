"""
The contracts of templates and calendars, as test classes to inherit from.

Templates are tested with dotted paths only, and cron expressions with numbers and `*` only. An
implementation tests its further features itself.
"""

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from wfcore.errors import TemplateFailed
from wfcore.model.json import Json
from wfcore.ports.system import Calendar, Templates

NAMES: Mapping[str, Json] = {
    "variables": {"text": "ü ✓", "number": 7, "fraction": 1.5, "none": None, "yes": True},
    "steps": {"fetch": {"output": {"rows": [{"id": 1}, {"id": 2}], "deep": {"er": [[]]}}}},
    "big": "x" * 600_000,
}


class TemplatesContract:
    """
    The promises of `wfcore.ports.system.Templates`. Subclasses provide a fixture `templates`.
    Support for dotted paths is enough.
    """

    known: ClassVar[Mapping[str, set[str] | None]] = {"variables": {"text"}, "steps": None}

    @pytest.mark.parametrize(
        "given_path", ["text", "number", "fraction", "none", "yes"], ids=lambda name: name
    )
    def test_a_whole_template_keeps_the_type(self, templates: Templates, given_path: str) -> None:
        """A string that is a single template returns the value itself, not its text."""
        variables = NAMES["variables"]
        assert isinstance(variables, Mapping)
        result = templates.render(f"{{{{ variables.{given_path} }}}}", NAMES)
        assert result == variables[given_path]
        assert type(result) is type(variables[given_path])

    def test_objects_and_arrays_come_whole(self, templates: Templates) -> None:
        """The value at the end of a path is returned unchanged."""
        found = templates.render("{{steps.fetch.output}}", NAMES)
        assert found == {"rows": [{"id": 1}, {"id": 2}], "deep": {"er": [[]]}}

    @pytest.mark.parametrize("given_path", ["variables.nope", "variables.none.x", "steps.a.b.c"])
    def test_a_missing_field_is_null_on_request(
        self, templates: Templates, given_path: str
    ) -> None:
        """With `missing_is_null`, a field that is not in the data is null, as are its fields."""
        text = f"{{{{ {given_path} }}}}"
        assert templates.render(text, NAMES, missing_is_null=True) is None
        with pytest.raises(TemplateFailed):
            templates.render(text, NAMES)

    def test_text_around_a_template_makes_text(self, templates: Templates) -> None:
        """Any text beside a template makes the result text."""
        text = "{{ variables.text }}: {{ variables.number }} rows"
        assert templates.render(text, NAMES) == "ü ✓: 7 rows"
        assert templates.render("{{ variables.number }} ", NAMES) == "7 "
        assert templates.render("{{ variables.number }}{{ variables.number }}", NAMES) == "77"

    def test_templates_inside_are_rendered(self, templates: Templates) -> None:
        """
        Lists and objects keep their structure; keys are not templates, and other values do not
        change.
        """
        value: Json = {
            "{{ key }}": ["{{ variables.number }}", {"a": "{{ variables.yes }}"}],
            "plain": [1, None, True, "no template"],
        }
        assert templates.render(value, NAMES) == {
            "{{ key }}": [7, {"a": True}],
            "plain": [1, None, True, "no template"],
        }

    @pytest.mark.parametrize(
        "given_text",
        ["{{ nobody }}", "{{ variables.nobody }}", "a {{ steps.nobody.output }}", "{{ text }}"],
    )
    def test_an_unknown_name_fails(self, templates: Templates, given_text: str) -> None:
        """An unknown name is an error, not an empty text."""
        with pytest.raises(TemplateFailed):
            templates.render(given_text, NAMES)

    @pytest.mark.parametrize(
        "given_text",
        ["{{ variables.text.__class__ }}", "{{ variables.keys }}", "{{ steps.items }}"],
    )
    def test_there_is_nothing_behind_the_data(self, templates: Templates, given_text: str) -> None:
        """Attributes and methods of the host language are not accessible."""
        with pytest.raises(TemplateFailed):
            templates.render(given_text, NAMES)

    def test_the_same_gives_the_same_and_changes_nothing(self, templates: Templates) -> None:
        """Rendering is a pure function."""
        before = deepcopy(NAMES)
        value = ["{{ steps.fetch.output.rows }}", "{{ variables.text }}!"]
        assert templates.render(value, NAMES) == templates.render(value, NAMES)
        assert before == NAMES

    def test_a_result_over_the_limit_fails(self, templates: Templates) -> None:
        """A result of more than 1 MB is an error, whatever the result consists of."""
        assert templates.render("{{ big }}", NAMES) == NAMES["big"]
        for value in ("{{ big }}{{ big }}", ["{{ big }}", "{{ big }}"]):
            with pytest.raises(TemplateFailed):
                templates.render(value, NAMES)

    def test_whoever_asks_may_allow_more(self, templates: Templates) -> None:
        """The caller may set a higher limit, for example for rows."""
        value: Json = ["{{ big }}", "{{ big }}"]
        assert templates.render(value, NAMES, 2_000_000) == [NAMES["big"]] * 2
        with pytest.raises(TemplateFailed):
            templates.render(value, NAMES, 1_000_000)

    @pytest.mark.parametrize(
        "given_text", ["", "plain", "{{ variables.text }}", "{{ steps.anything.at.all }} and so on"]
    )
    def test_what_can_be_right_has_no_problems(self, templates: Templates, given_text: str) -> None:
        """
        No problem is reported for a known name, or for any name nested under a known name whose
        contents are unknown.
        """
        assert list(templates.problems(given_text, self.known)) == []

    @pytest.mark.parametrize(
        ("given_text", "given_said"),
        [
            ("{{ nobody }}", "nobody"),
            ("a {{ variables.nobody }}", "nobody"),
            ("{{ variables.text", ""),
            ("{% if true %}x{% endif %}", ""),
        ],
    )
    def test_what_cannot_be_right_is_said(
        self, templates: Templates, given_text: str, given_said: str
    ) -> None:
        """
        Unknown names (with their names), unfinished templates and statements are reported without
        data.
        """
        problems = list(templates.problems(given_text, self.known))
        assert problems
        assert given_said in problems[0]


class CalendarContract:
    """
    The promises of `wfcore.ports.system.Calendar`. Subclasses provide a fixture `calendar`. Support
    for numbers and `*` is enough.
    """

    @pytest.mark.parametrize(
        ("given_cron", "given_expected"),
        [
            ("* * * * *", "2026-02-28T23:31"),
            ("0 * * * *", "2026-03-01T00:00"),
            ("30 9 * * *", "2026-03-01T09:30"),
            ("30 23 * * *", "2026-03-01T23:30"),
            ("0 0 31 * *", "2026-03-31T00:00"),
            ("0 0 29 2 *", "2028-02-29T00:00"),
            ("15 10 * * 1", "2026-03-02T10:15"),
            ("15 10 * * 0", "2026-03-01T10:15"),
        ],
    )
    def test_the_next_time(self, calendar: Calendar, given_cron: str, given_expected: str) -> None:
        """`next_local` returns the first later local time that matches all five fields."""
        after = datetime(2026, 2, 28, 23, 30)
        assert calendar.problems(given_cron, "UTC") == {}
        assert calendar.next_local(given_cron, after) == datetime.fromisoformat(given_expected)

    def test_times_follow_one_another(self, calendar: Calendar) -> None:
        """Called with its own result, `next_local` returns the next time. Seconds are ignored."""
        local: datetime | None = datetime(2026, 3, 1, 9, 29, 59)
        found = []
        for _ in range(3):
            assert local is not None
            local = calendar.next_local("30 9 * * *", local)
            found.append(str(local))
        assert found == [f"2026-03-0{day} 09:30:00" for day in (1, 2, 3)]

    @pytest.mark.parametrize("given_cron", ["", "* * * *", "61 * * * *" * 2, "x * * * *"])
    def test_what_is_no_expression_is_said(self, calendar: Calendar, given_cron: str) -> None:
        """An error in an expression is reported under `cron`."""
        assert list(calendar.problems(given_cron, "UTC")) == ["cron"]

    def test_zones_are_known_by_name(self, calendar: Calendar) -> None:
        """A zone knows its offset at any instant. The error for an unknown zone names the zone."""
        berlin = calendar.zone("Europe/Berlin")
        summer = datetime(2026, 7, 1, 12, tzinfo=UTC).astimezone(berlin)
        assert summer.hour == 14
        with pytest.raises(ValueError, match="Atlantis"):
            calendar.zone("Europe/Atlantis")
        assert list(calendar.problems("* * * * *", "Europe/Atlantis")) == ["timezone"]
