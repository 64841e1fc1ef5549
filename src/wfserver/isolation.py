"""How well code steps are kept apart from the server, and what that level does not hold."""

from attrs import frozen


@frozen
class Isolation:
    """A level of isolation: what it holds, what it does not, and how to get a better one."""

    level: str
    holds: tuple[str, ...]
    lacks: tuple[str, ...]
    cure: str | None = None

    @property
    def summary(self) -> str:
        """One line."""
        return f"{self.level}: {', '.join(self.holds)}; no {' or '.join(self.lacks)} isolation"


PROCESS = Isolation(
    level="process",
    holds=("a killed process tree", "limits on memory, output and time"),
    lacks=("file system", "network"),
    cure="run only code that you trust, or the whole server in a container",
)


def isolation() -> Isolation:
    """The level that steps have here. This version knows one."""
    return PROCESS
