"""
Plants the bugs that the variable PLANTED names, into any server whose PYTHONPATH leads here.
"""

import importlib
import os

for name in os.environ.get("PLANTED", "").split():
    importlib.import_module(f"tests.proofs.kills.planted.{name}").plant()
