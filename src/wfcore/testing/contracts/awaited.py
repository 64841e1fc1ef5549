"""What keeps contracts of coroutines from failing in words that nobody understands."""

from inspect import iscoroutinefunction

import pytest

UNAWAITED = (
    "this test is a coroutine, and nothing here awaits it: pip install pytest-asyncio, and write "
    "in pytest.ini, under [pytest]: asyncio_mode = auto"
)


class Awaited:
    """A contract whose tests are coroutines. Says how to run them where nobody would."""

    @pytest.fixture(autouse=True)
    def _somebody_awaits(self, request: pytest.FixtureRequest) -> None:
        """Before any other fixture: those may be coroutines as well."""
        marks = ("asyncio", "anyio")
        awaited = any(request.node.get_closest_marker(mark) for mark in marks)
        if iscoroutinefunction(request.function) and not awaited:
            pytest.fail(UNAWAITED, pytrace=False)
