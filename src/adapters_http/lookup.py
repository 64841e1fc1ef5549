"""Finding the row of a request: by dictionary, segment for segment, never by walking a list."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from adapters_http.route import Route

Methods: TypeAlias = Mapping[str, Route]


class _Node:
    """What may follow a prefix of segments."""

    __slots__ = ("methods", "static", "wild")

    def __init__(self) -> None:
        self.static: dict[str, _Node] = {}
        self.wild: _Node | None = None
        self.methods: dict[str, Route] = {}


class Lookup:
    """The table as a tree. A static segment goes before a parameter in the same place."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            methods = self._grow(route.path).methods
            if route.method in methods:
                raise ValueError(f"two rows for {route.method} {route.path}")
            methods[route.method] = route
            if route.method == "GET":
                methods.setdefault("HEAD", route)

    def _grow(self, path: str) -> _Node:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.wild = node.wild or _Node()
                node = node.wild
            else:
                node = node.static.setdefault(segment, _Node())
        return node

    def find(self, path: str) -> tuple[Methods, list[str]]:
        """
        The rows of *path* by method, and the values of its parameters; no rows: no such path.

        No parameter is empty, and none holds what cannot be printed.
        """
        node, values = self._root, list[str]()
        for segment in path.split("/")[1:]:
            following = node.static.get(segment)
            if following is None:
                if node.wild is None or not segment or not segment.isprintable():
                    return {}, values
                following = node.wild
                values.append(segment)
            node = following
        return node.methods, values
