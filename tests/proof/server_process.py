"""
The server that the kill loop kills: imported ahead, serving when told, with a planted bug or none.

Reads a line from stdin, then serves and says its URL.
"""

import importlib
import sys

from wfserver.serve import ServerInfo, run
from wfserver.settings import settings_from


def say(info: ServerInfo) -> None:
    print(info.url, flush=True)


for name in sys.argv[1:]:
    importlib.import_module(f"proof.planted.{name}").plant()
if sys.stdin.readline():
    run(settings_from(port=0), say)
