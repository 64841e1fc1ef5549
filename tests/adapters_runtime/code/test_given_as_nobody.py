"""Files of earlier steps where the server is an ordinary user, whose steps are that user, too."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import attrs
import pytest

HERE = Path(__file__).parent
AS_NOBODY = """
for place in python source packages tests; do
    mkdir "$0/$place"; mount --bind "$1" "$0/$place"; shift
done
export PYTHONPATH="$0/source:$0/packages" PYTHONDONTWRITEBYTECODE=1 HOME="$0"
exec setpriv --reuid 54321 --regid 54321 --clear-groups \\
    "$0/python/bin/python3" -m pytest -q -p no:cacheprovider -c /dev/null -W ignore \\
    -o asyncio_mode=auto --rootdir "$0/tests" --confcutdir "$0/tests" --basetemp "$0/made" \\
    "$0/tests/test_given_files.py" -k reaches
"""
"""Nobody else may read where root has its Python."""


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_nothing_reaches_stored_files_of_an_ordinary_user() -> None:
    """FI-4: at each level, although the files belong to the user that the step is."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        seen = (sys.base_prefix, HERE.parents[2] / "src", Path(attrs.__file__).parents[1], HERE)
        command = ["unshare", "-m", "sh", "-ec", AS_NOBODY, folder, *map(str, seen)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
