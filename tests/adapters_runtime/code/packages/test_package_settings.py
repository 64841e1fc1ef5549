"""Installers get of the operator's settings what concerns index and network. PK-8, PK-11."""

import os
from pathlib import Path

from adapters_runtime.code.packages import settings
from adapters_runtime.code.packages.sandbox import HERE
from adapters_runtime.code.packages.settings import Configuration, for_npm, for_pip


def test_pip_is_told_of_index_and_network_only() -> None:
    """The environment counts more than `install`, and this more than what is for all commands."""
    listed = """
install.index-url='https://install.example/simple'
global.index-url='https://global.example/simple'
global.timeout='5'
install.retries='1'
global.no-clean='true'
user.proxy='http://user.example'
a line of talk
"""
    environment = {
        "PIP_TIMEOUT": "7",
        "PIP_EXTRA_INDEX_URL": "https://more.example",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "pip_cert": "none",
        "HTTPS_PROXY": "http://proxy.example:1",
        "no_proxy": "localhost",
        "SECRET": "s3cret",
    }
    assert for_pip(environment, listed) == Configuration(
        {
            "PIP_INDEX_URL": "https://install.example/simple",
            "PIP_EXTRA_INDEX_URL": "https://more.example",
            "PIP_TIMEOUT": "7",
            "PIP_RETRIES": "1",
            "HTTPS_PROXY": "http://proxy.example:1",
            "no_proxy": "localhost",
        }
    )
    assert "example" not in repr(for_pip(environment, listed))


def test_npm_is_told_of_registries_and_network_only(tmp_path: Path) -> None:
    """The environment counts more than the user's file, and this more than the global one."""
    (tmp_path / ".npmrc").write_text("""
; registry=https://comment.example
 # registry=https://comment.example
 registry = "https://user.example/"
@scope:registry=https://scope.example
//user.example/:_authToken=${TOKEN}
//other.example/:_authToken='a=${UNKNOWN}'
script-shell=/bin/evil
strict-ssl=false
nothing
""")
    (tmp_path / "global").write_text("registry=https://global.example\nfetch-retries=3\n")
    environment = {
        "HOME": str(tmp_path),
        "TOKEN": "t0ken",
        "NPM_CONFIG_GLOBALCONFIG": str(tmp_path / "global"),
        "npm_config_fetch_retries": "4",
        "npm_config_//own.example/:_authToken": "own",
        "npm_config_@My_Scope:registry": "https://mine.example",
        "npm_config_script_shell": "/bin/evil",
        "npm_config_proxy": "http://p.example\nscript-shell=/bin/evil",
        "https_proxy": "http://proxy.example",
        "SECRET": "s3cret",
    }
    known = for_npm(environment)
    assert known.files["npmrc"].decode().splitlines() == [
        "registry=https://user.example/",
        "fetch-retries=4",
        "@scope:registry=https://scope.example",
        "//user.example/:_authToken=t0ken",
        "//other.example/:_authToken=a=${UNKNOWN}",
        "strict-ssl=false",
        "//own.example/:_authToken=own",
        "@My_Scope:registry=https://mine.example",
    ]
    assert known.variables == {"https_proxy": "http://proxy.example"}
    assert known.registries == (
        "https://user.example/",
        "https://scope.example",
        "https://mine.example",
    )
    assert "t0ken" not in repr(known)


def test_npm_reads_the_file_that_is_named_for_the_user(tmp_path: Path) -> None:
    """Instead of the one at home; a file that is none, or no text, says nothing."""
    (tmp_path / ".npmrc").write_text("registry=https://home.example\n")
    (tmp_path / "mine").write_text("registry=https://mine.example\n")
    (tmp_path / "broken").write_bytes(b"registry=\xff\n")
    home = {"HOME": str(tmp_path)}
    assert for_npm(home).registries == ("https://home.example",)
    for name, registries in (("mine", ("https://mine.example",)), ("broken", ()), ("none", ())):
        named = {**home, "npm_config_userconfig": str(tmp_path / name)}
        assert for_npm(named).registries == registries
    assert for_npm({}) == Configuration({})


def test_files_and_folders_of_a_setting_come_along(tmp_path: Path) -> None:
    """Files as copies, folders by name; neither large files nor what all see in /etc."""
    (wheels := tmp_path / "w+x").mkdir()
    (tmp_path / "link").symlink_to(wheels)
    (tmp_path / "ca.pem").write_bytes(b"CA")
    for name, size in (("most", settings._MOST), ("large", settings._MOST + 1)):
        with open(tmp_path / name, "wb") as file:
            file.truncate(size)
    real = os.path.realpath(wheels)
    found = f"file://{str(wheels).replace('+', '%2B')} https://x.example {tmp_path / 'link'}"
    known = for_pip(
        {
            "PIP_CERT": str(tmp_path / "ca.pem"),
            "PIP_FIND_LINKS": found,
            "PIP_CLIENT_CERT": str(tmp_path / "large"),
            "REQUESTS_CA_BUNDLE": str(tmp_path / "most"),
            "SSL_CERT_DIR": "/etc/ssl",
        },
        "",
    )
    assert known.variables == {
        "PIP_CERT": f"{HERE}/0-ca.pem",
        "PIP_FIND_LINKS": f"{real} https://x.example {real}",
        "PIP_CLIENT_CERT": str(tmp_path / "large"),
        "REQUESTS_CA_BUNDLE": f"{HERE}/1-most",
        "SSL_CERT_DIR": "/etc/ssl",
    }
    assert known.files == {"0-ca.pem": b"CA", "1-most": bytes(settings._MOST)}
    assert known.brought == (real, real)
    (tmp_path / ".npmrc").write_text(f"cafile={tmp_path / 'ca.pem'}\n")
    known = for_npm({"HOME": str(tmp_path)})
    assert known.files == {"0-ca.pem": b"CA", "npmrc": f"cafile={HERE}/0-ca.pem\n".encode()}
