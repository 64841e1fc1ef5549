"""A console as the server serves it to authors: with a reader of texts, tests, and examples."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_runtime.cron import CronCalendar
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfserver.definitions.read import checked
from wfserver.serving import authors

from .conftest import Site

CONFIG = HttpConfig(
    console=True,
    read_definition=lambda text: checked(text, ""),
    read_lines=authors.lines_in,
    play_scenarios=authors.played,
    example_definitions=authors.examples,
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, CONFIG, templates=MiniJinjaTemplates(), calendar=CronCalendar())
    yield made
    made.close()
