"""
Packages without a network: wheels in a folder that pip finds, and a registry of npm's protocol.

`operator(...)` is the environment of somebody who has configured pip and npm to look only there.
"""

import base64
import hashlib
import io
import json
import os
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

EPOCH = 315_532_800


def wheel(
    folder: Path, name: str, version: str, code: str = "", needs: tuple[str, ...] = ()
) -> Path:
    """A wheel of one module with a `__version__`."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    wanted = "".join(f"Requires-Dist: {one}\n" for one in needs)
    files = {
        f"{module}.py": f"__version__ = {version!r}\n{code}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wanted}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name_in, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name_in, text)
    return path


def sdist(folder: Path, name: str, version: str, marker: Path) -> Path:
    """A source archive that is its own build backend, which leaves *marker*."""
    built = wheel(folder / "of-sdists", name, version)
    backend = f"""import base64
def build_wheel(directory, config_settings=None, metadata_directory=None):
    open({str(marker)!r}, "w").close()
    open(directory + "/{built.name}", "wb").write(base64.b64decode({_base64(built)!r}))
    return {built.name!r}
"""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {"pyproject.toml": project, "PKG-INFO": info, "backend.py": backend}
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            _add(archive, f"{name}-{version}/{file}", text)
    return path


def spy(folder: Path, name: str, code: str) -> Path:
    """
    A source archive whose build runs *code*, a function body that returns something to be
    printed: what it returned is `found` of the module that is built.
    """
    body = "".join(f"    {line}\n" for line in code.splitlines())
    backend = f"""import io, os, zipfile
def look():
{body}
def build_wheel(directory, config_settings=None, metadata_directory=None):
    info = "{name}-1.0.dist-info"
    files = {{"{name}.py": f"found = {{look()!r}}\\n",
             f"{{info}}/METADATA": "Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n",
             f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n"
                               "Tag: py3-none-any\\n"}}
    listed = (*files, f"{{info}}/RECORD")
    files[f"{{info}}/RECORD"] = "".join(f"{{path}},,\\n" for path in listed)
    with zipfile.ZipFile(directory + "/{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return "{name}-1.0-py3-none-any.whl"
"""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in {
            "pyproject.toml": project,
            "PKG-INFO": info,
            "backend.py": backend,
        }.items():
            _add(archive, f"{name}-1.0/{file}", text)
    return path


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def tarball(package: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    """A package as npm packs it."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, text in {"package.json": json.dumps(package), **files}.items():
            _add(archive, f"package/{name}", text)
    return whole.getvalue()


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(text.encode()), EPOCH
    archive.addfile(entry, io.BytesIO(text.encode()))


class Registry:
    """
    The packages of a registry; `asked` are the paths of the requests so far. While it is `away` it
    has nothing; while `open` is not set, whoever asks waits.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.away = False
        self.open = threading.Event()
        self.open.set()
        self._versions: dict[str, dict[str, Any]] = {}
        self._tarballs: dict[str, bytes] = {}

    def add(self, name: str, version: str, files: Mapping[str, str], **package: Any) -> None:
        """Publish a version of a package."""
        whole = {"name": name, "version": version, **package}
        content = tarball(whole, files)
        file = f"{name.rpartition('/')[2]}-{version}.tgz"
        path = f"/{name}/-/{file}"
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        dist = {"tarball": path, "integrity": f"sha512-{digest}"}
        self._tarballs[path] = content
        self._versions.setdefault(name, {})[version] = {**whole, "dist": dist}

    def put(self, path: str, content: bytes) -> str:
        """Have *content* at a path that belongs to no package; its address."""
        self._tarballs[path] = content
        return f"{self.url}{path}"

    def put_wheel(self, wheel: Path) -> None:
        """Publish a wheel, or a source archive, in the index for pip, which is below `/simple`."""
        content = wheel.read_bytes()
        file = self.put(f"/files/{wheel.name}", content)
        page = f"/simple/{re.split('-[0-9]', wheel.name)[0].replace('_', '-')}/"
        link = f'<a href="{file}#sha256={hashlib.sha256(content).hexdigest()}">{wheel.name}</a>'
        self._tarballs[page] = self._tarballs.get(page, b"<!DOCTYPE html>") + link.encode()

    def answer(self, path: str) -> bytes | None:
        """What is at *path*; None: nothing."""
        self.asked.append(path)
        self.open.wait()
        if self.away:
            return None
        if path in self._tarballs:
            return self._tarballs[path]
        versions = self._versions.get(path[1:])
        if versions is None:
            return None
        for version in versions.values():
            tarball = version["dist"]["tarball"]
            if tarball.startswith("/"):
                version["dist"]["tarball"] = self.url + tarball
        latest = {"latest": list(versions)[-1]}
        return json.dumps({"name": path[1:], "dist-tags": latest, "versions": versions}).encode()


@contextmanager
def registry() -> Iterator[Registry]:
    """A registry at a port of its own."""
    shelf = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = shelf.answer(unquote(self.path))
            self.send_response(200 if answer is not None else 404)
            body = answer if answer is not None else b'{"error": "Not found"}'
            if self.path.startswith("/simple/"):
                self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            with suppress(ConnectionError):  # whoever asked may have been killed
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    shelf.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield shelf
    finally:
        shelf.open.set()
        server.shutdown()
        thread.join()
        server.server_close()


def operator(home: Path, wheels: Path | None = None, npm: str | None = None) -> dict[str, str]:
    """An environment in which pip knows only *wheels*, and npm only the registry at *npm*."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels or home / "no-wheels"),
        "PIP_NO_CACHE_DIR": "1",
        "npm_config_userconfig": str(home / "user.npmrc"),
        "npm_config_globalconfig": str(home / "global.npmrc"),
        "npm_config_registry": npm or "http://127.0.0.1:9",
        "npm_config_cache": str(home / "npm"),
        "npm_config_fetch_retries": "0",
    }


def by_index(environment: Mapping[str, str], url: str) -> dict[str, str]:
    """The same operator with an index for pip, at the registry with that address, alone."""
    away = ("PIP_NO_INDEX", "PIP_FIND_LINKS")
    kept = {name: value for name, value in environment.items() if name not in away}
    return {**kept, "PIP_INDEX_URL": f"{url}/simple/"}


class Shelf:
    """What there is to install, and an operator who has configured just that."""

    def __init__(self, root: Path, npm: Registry) -> None:
        self.wheels, self.npm = root / "wheels", npm
        self.environment = operator(root / "home", self.wheels, npm.url)
        self.built = root / "built"
        wheel(self.wheels, "tiny", "1.0", needs=("other>=2",))
        wheel(self.wheels, "tiny", "1.1", "import other\n", needs=("other>=2",))
        wheel(self.wheels, "other", "2.0")
        sdist(self.wheels, "source", "1.0", self.built)
        hook = {"postinstall": f"touch {root / 'npm-ran-a-script'}"}
        npm.add("common", "1.0.0", {"index.js": "module.exports = {n: 1}"}, scripts=hook)
        npm.add(
            "@scope/modern",
            "2.0.0",
            {"index.js": "import c from 'common'; export const n = c.n + 1"},
            type="module",
            exports="./index.js",
            dependencies={"common": "^1.0.0"},
        )

    def by_index(self) -> dict[str, str]:
        """The same operator, whose wheels so far are in an index beside the registry."""
        for path in self.wheels.glob("*.whl"):
            self.npm.put_wheel(path)
        return by_index(self.environment, self.npm.url)
