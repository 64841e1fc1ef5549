"""A server that speaks S3, on loopback, for all tests of a session; buckets are made for each."""

import os
from collections.abc import Iterator, Mapping
from urllib.request import Request, urlopen

from attrs import define
from moto.server import ThreadedMotoServer

KEY, SECRET = "test-access", "test-secret-that-is-shown-nowhere"


@define
class Buckets:
    """A running server. `made`: how many buckets it has given."""

    endpoint: str
    made: int = 0

    @property
    def environment(self) -> Mapping[str, str]:
        """How a process reaches it: credentials that are given, so that nobody is asked for any."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def new(self) -> str:
        """The URL of a prefix in a new bucket."""
        self.made += 1
        name = f"bucket-{os.getpid()}-{self.made}"
        self.call("PUT", f"/{name}")
        return f"s3://{name}/kept/here"

    def call(self, method: str, path: str) -> bytes:
        """One request past our adapter."""
        asked = Request(self.endpoint + path, method=method)
        with urlopen(asked, timeout=60) as answer:
            return bytes(answer.read())


def serving() -> Iterator[Buckets]:
    """The server, stopped at the end."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield Buckets(f"http://{host}:{port}")
    server.stop()
