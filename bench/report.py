"""Rows of figures beside what was promised, and figures measured in turns."""

from collections.abc import Callable

from attrs import define

TURNS = 15


@define
class Report:
    """Prints rows as they come; `kept`: whether all promises so far were kept."""

    kept: bool = True

    def ratio(self, what: str, got: float, against: float, unit: str, wanted: float) -> None:
        """*got* in relation to *against*: at least *wanted*."""
        ratio = got / against
        good = ratio >= wanted
        self._row(
            what, f"{got:,.0f} {unit}", f"{against:,.0f} {unit}", f"{ratio:.2f} ≥ {wanted}", good
        )

    def at_most(self, what: str, got: str, against: str, ratio: float, wanted: float) -> None:
        """*ratio* must not be over *wanted*."""
        self._row(what, got, against, f"{ratio:.2f} ≤ {wanted}", ratio <= wanted)

    def most(self, what: str, got: float, unit: str, wanted: float, against: str = "") -> None:
        """*got* must not be over *wanted*."""
        self._row(what, f"{got:,.2f} {unit}", against, f"≤ {wanted} {unit}", got <= wanted)

    def plain(self, what: str, got: str, against: str = "") -> None:
        """A figure without a promise."""
        self._row(what, got, against, "", good=True)

    def _row(self, what: str, got: str, against: str, wanted: str, good: bool) -> None:
        self.kept &= good
        mark = "" if good else "  ✗"
        print(f"{what:<62} {got:>13}  {against:<32} {wanted}{mark}".rstrip(), flush=True)


def in_turns(
    seconds: float, one: Callable[[float], float], other: Callable[[float], float]
) -> tuple[float, float]:
    """
    Two rates measured in turns, so that a busy moment meets both; the turn in the middle, so
    that a disk that stands still for a moment (a flush may take 300 ms) does not count.
    """
    turns = [(one(seconds / TURNS), other(seconds / TURNS)) for _ in range(TURNS)]
    return sorted(turns, key=lambda turn: turn[0] / turn[1])[TURNS // 2]


def in_turns_few(one: Callable[[], float], other: Callable[[], float]) -> tuple[float, float]:
    """As `in_turns`, for rates that take a while: the middle of three turns."""
    turns = [(one(), other()) for _ in range(3)]
    return sorted(turns, key=lambda turn: turn[0] / turn[1])[1]
