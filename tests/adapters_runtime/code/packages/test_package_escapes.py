"""
What packages try while they are installed: each of these probes succeeded, as the operator, when
installers ran outside the sandbox of steps. PK-7, PK-9, PK-10.
"""

import os
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_runtime.code.languages import Interpreters
from adapters_runtime.code.packages import installers
from adapters_runtime.code.packages.environments import PackageEnvironments
from adapters_runtime.sandbox.isolation.config import LADDER, PROCESS, UID
from adapters_runtime.sandbox.isolation_level import Isolation, find_level
from tests.support.package_index import Shelf, by_index, registry, sdist, spy, wheel
from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Language, Needs


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    with registry() as npm:
        yield Shelf(tmp_path_factory.mktemp("shelf"), npm)


@pytest.fixture
def environments(shelf: Shelf, tmp_path: Path) -> PackageEnvironments:
    return PackageEnvironments(tmp_path / "packages", by_index(shelf.environment, shelf.npm.url))


def published(shelf: Shelf, name: str, *needs: str) -> Needs:
    """A wheel of that name in the index, which depends on *needs*."""
    shelf.npm.put_wheel(wheel(shelf.wheels.parent / "published", name, "1.0", needs=needs))
    return Needs(Language.PYTHON, (f"{name}==1.0",))


async def refused(environments: PackageEnvironments, needs: Needs) -> str:
    """Why *needs* are refused; nothing of them is kept."""
    with pytest.raises(PackagesUnavailable) as caught:
        await environments.prepare(needs)
    assert environments.usage().count == 0
    return str(caught.value)


async def test_a_source_archive_by_address_is_not_built(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path
) -> None:
    """A wheel of the index depends on `evil @ http…tar.gz`: its build does not run."""
    archive = sdist(tmp_path, "evil", "1.0", marker := tmp_path / "built")
    url = shelf.npm.put("/elsewhere/evil-1.0.tar.gz", archive.read_bytes())
    why = await refused(environments, published(shelf, "asks-for-a-build", f"evil @ {url}"))
    assert "named by address" in why
    assert not marker.exists()


@pytest.mark.parametrize("scheme", ["http", "file"])
async def test_a_wheel_by_address_or_path_is_refused(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path, scheme: str
) -> None:
    """A wheel that lies elsewhere is not even fetched; nor is one among the operator's files."""
    path = wheel(tmp_path, "evil", "1.0")
    url = shelf.npm.put("/elsewhere/evil-1.0-py3-none-any.whl", path.read_bytes())
    if scheme == "file":
        url = path.as_uri()
    needs = published(shelf, f"asks-by-{scheme}", f"evil @ {url}")
    shelf.npm.asked.clear()
    assert "evil is named by address or path" in await refused(environments, needs)
    assert [path for path in shelf.npm.asked if "elsewhere" in path] == []


async def test_an_address_that_is_not_wanted_is_no_hindrance(
    environments: PackageEnvironments, shelf: Shelf
) -> None:
    """A package that names one for an extra, or for another system, is installed without it."""
    needs = ("evil @ http://127.0.0.1:9/x.whl ; extra == 'dev'",)
    needs += ("evil @ http://127.0.0.1:9/y.whl ; sys_platform == 'win32'",)
    assert await environments.prepare(published(shelf, "asks-for-little", *needs))


async def test_a_repository_is_not_fetched(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path
) -> None:
    """`evil @ git+http://…` starts no git."""
    marker = tmp_path / "marker"
    project = '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    files = {"pyproject.toml": project, "b.py": f"open({str(marker)!r}, 'w')\n"}
    url = git_repository(shelf, tmp_path / "repository", files)
    why = await refused(environments, published(shelf, "asks-for-git", f"evil @ git+{url}"))
    assert "named by address" in why
    assert not any(path.startswith(f"/{tmp_path.name}") for path in shelf.npm.asked)
    assert not marker.exists()


def git_repository(shelf: Shelf, folder: Path, files: dict[str, str]) -> str:
    """The address of a repository with these files."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git")
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    commit = (*who, "commit", "-qm", "one")
    for words in (("init", "-q"), ("add", "."), commit, ("update-server-info",)):
        subprocess.run([git, *words], cwd=folder, check=True, env={"HOME": str(folder)})
    root = f"/{folder.parent.name}"
    for path in (folder / ".git").rglob("*"):
        if path.is_file():
            at = f"{root}/{path.relative_to(folder / '.git')}"
            for question in ("", "?service=git-upload-pack"):
                shelf.npm.put(at + question, path.read_bytes())
    return f"{shelf.npm.url}{root}"


async def test_a_name_that_could_be_a_file_is_not_taken_for_one(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path
) -> None:
    """Whatever a requirement looks like: paths, options and files of options are refused."""
    for written in ("x==1.0+a.zip", "-r/etc/passwd", "--index-url=http://127.0.0.1:9/", "./x"):
        await refused(environments, Needs(Language.PYTHON, (written,)))


async def test_source_without_a_wheel_is_refused_at_any_depth(
    environments: PackageEnvironments, shelf: Shelf, tmp_path: Path
) -> None:
    """What a wheel of the index needs has a wheel there, or is not installed."""
    shelf.npm.put_wheel(sdist(tmp_path, "onlysource", "1.0", marker := tmp_path / "built"))
    await refused(environments, published(shelf, "asks-for-source", "onlysource"))
    assert not marker.exists()


@pytest.mark.parametrize("knows", [True, False], ids=["npm-11", "older"])
@pytest.mark.parametrize("kind", ["git", "tarball", "file", "shrinkwrap", "alias"])
async def test_npm_takes_only_what_the_registry_has(
    environments: PackageEnvironments,
    shelf: Shelf,
    tmp_path: Path,
    kind: str,
    knows: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Dependencies by repository, address, path, or by somebody's lockfile are refused, and not even
    fetched; also by an npm that has no options for it.
    """
    if not knows:
        monkeypatch.setattr(installers, "_REGISTRY_ONLY", ())
    evil = {"package.json": '{"name": "evil", "version": "1.0.0"}', "index.js": ""}
    from tests.support.package_index import tarball

    packed = tarball({"name": "evil", "version": "1.0.0"}, {"index.js": ""})
    elsewhere = shelf.npm.put("/elsewhere/evil.tgz", packed)
    files, wanted = {"index.js": ""}, {}
    if kind == "git":
        wanted = {"evil": f"git+{git_repository(shelf, tmp_path / 'evil', evil)}"}
    elif kind == "tarball":
        wanted = {"evil": elsewhere}
    elif kind == "alias":
        wanted = {"other": f"npm:evil@{elsewhere}"}
    elif kind == "file":
        (tmp_path / "evil.tgz").write_bytes(packed)
        wanted = {"evil": f"file:{tmp_path}/evil.tgz"}
    else:
        wanted = {"common": "1.0.0"}
        files["npm-shrinkwrap.json"] = shrinkwrap(elsewhere.replace("127.0.0.1", "localhost"))
    shelf.npm.add(f"asks-by-{kind}", "1.0.0", files, dependencies=wanted, _hasShrinkwrap=True)
    shelf.npm.asked.clear()
    await refused(environments, Needs(Language.JAVASCRIPT, (f"asks-by-{kind}@1.0.0",)))
    if kind != "shrinkwrap":
        assert [path for path in shelf.npm.asked if "asks-by" not in path] == []


def shrinkwrap(url: str) -> str:
    import json

    entry = {"version": "1.0.0", "resolved": url}
    packages = {"": {"dependencies": {"common": "1.0.0"}}, "node_modules/common": entry}
    whole = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": packages}
    return json.dumps(whole)


async def test_npm_runs_no_script(environments: PackageEnvironments, shelf: Shelf) -> None:
    """Scripts of packages do not run, whatever the operator's settings say."""
    await environments.prepare(Needs(Language.JAVASCRIPT, ("common@1.0.0",)))
    assert not (shelf.wheels.parent / "npm-ran-a-script").exists()


LOOK = """
def tried(deed):
    try:
        return deed()
    except OSError as error:
        return type(error).__name__
return {{
    "key": tried(lambda: open({secret!r}).read()),
    "write": tried(lambda: open({outside!r}, "w").write("x")),
    "environment": sorted(name for name in os.environ if "SECRET" in name or "WFCORE" in name),
    "parent": tried(lambda: b"SECRET" in open(f"/proc/{{os.getppid()}}/environ", "rb").read()),
    "server": tried(lambda: b"SECRET" in open("/proc/{server}/environ", "rb").read()),
    "list": tried(lambda: os.listdir({folder!r})),
}}
"""


@pytest.mark.parametrize("level", LADDER)
async def test_a_build_that_the_operator_allows_runs_in_the_sandbox(
    shelf: Shelf, tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build sees no key, no data folder, no environment, and writes nowhere but in its own."""
    if (await find_level(level, tmp_path / "looked")).name != level:
        pytest.skip(f"{level} cannot be had here")
    monkeypatch.setenv("AWS_SECRET_KEY", "s3cret")
    (tmp_path / "data").mkdir(mode=0o700)
    secret = tmp_path / "data" / "signing.key"
    secret.write_text("s3cret")
    name = f"spy{level}"
    outside, folder = tmp_path / "outside", str(tmp_path / "data")
    code = LOOK.format(secret=str(secret), outside=str(outside), folder=folder, server=os.getpid())
    shelf.npm.put_wheel(spy(tmp_path / "spies", name, code))
    environments = PackageEnvironments(
        tmp_path / "data" / "packages",
        {**by_index(shelf.environment, shelf.npm.url), "AWS_SECRET_KEY": "s", "WFCORE_X": "x"},
        lambda: Interpreters(os.environ["PATH"], public=level == UID),
        builds=True,
        isolation=Isolation(level, minimum=PROCESS, hidden=(folder,)),
    )
    needs = await environments.prepare(Needs(Language.PYTHON, (f"{name}==1.0",)))
    found = runpy.run_path(f"{environments.find(needs)}/{name}.py")["found"]
    if level == PROCESS:
        assert found["key"] == "s3cret"
        return
    assert not outside.exists()
    assert found["environment"] == []
    denied = {"PermissionError", "FileNotFoundError"}
    assert {found[name] for name in ("key", "write", "list", "server")} <= denied
    assert found["parent"] in (False, *denied)
