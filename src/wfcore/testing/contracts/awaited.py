"""A clear error if contracts with coroutines are run without pytest-asyncio in auto mode."""

from inspect import iscoroutinefunction

import pytest

UNAWAITED = (
    "this test is a coroutine, and nothing here awaits it: pip install pytest-asyncio, and write "
    "in pytest.ini, under [pytest]: asyncio_mode = auto"
)


class Awaited:
    """
    A contract whose tests are coroutines. If no plugin awaits coroutines, the error says how to run
    the tests.
    """

    @pytest.fixture(autouse=True)
    def _somebody_awaits(self, request: pytest.FixtureRequest) -> None:
        """Fail if no plugin awaits coroutines. Runs before any other fixture, even a coroutine."""
        marks = ("asyncio", "anyio")
        awaited = any(request.node.get_closest_marker(mark) for mark in marks)
        if iscoroutinefunction(request.function) and not awaited:
            pytest.fail(UNAWAITED, pytrace=False)
