"""A server that `wfcore up` has set up in a new folder, with a mail server beside it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from tests.adapters_runtime.notices.mail_server import MailServer, a_mail_server
from tests.system.scenarios.process import free_port
from tests.wfserver.conftest import document, end, start


@frozen
class Office:
    """A server at `url`, of the folder `data`; the way in that it printed; its mail server."""

    url: str
    link: str
    post: MailServer
    data: Path


@contextmanager
def an_office(folder: Path) -> Iterator[Office]:
    """Set up the server, and end it."""
    data = folder / "data"
    with a_mail_server() as post:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        mail = {"WFCORE_SMTP_URL": post.url, "WFCORE_MAIL_FROM": "flows@example.org"}
        asked = ("up", "--port", str(port), "--json")
        process = start(*asked, data=data, WFCORE_PUBLIC_URL=url, **mail)
        try:
            yield Office(url, document(process, data)["console"], post, data)
        finally:
            end(process)
