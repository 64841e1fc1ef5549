"""A clear error if contracts with coroutines are run without pytest-asyncio in auto mode."""

from inspect import iscoroutinefunction

import pytest

UNAWAITED = (
    "this test is a coroutine, and nothing here awaits it: pip install pytest-asyncio, and write "
    "in pytest.ini, under [pytest]: asyncio_mode = auto"
)


class Awaited:
    """
    A contract whose tests are coroutines. If nothing would await them, it says how to run them.
    """

    @pytest.fixture(autouse=True)
    def _somebody_awaits(self, request: pytest.FixtureRequest) -> None:
        """Before any other fixture: those may be coroutines as well."""
        marks = ("asyncio", "anyio")
        awaited = any(request.node.get_closest_marker(mark) for mark in marks)
        if iscoroutinefunction(request.function) and not awaited:
            pytest.fail(UNAWAITED, pytrace=False)
