"""`python -m wfserver` is `wfcore`."""

from wfserver.entry import main

main()
