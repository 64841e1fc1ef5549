"""Services with all parts for `wfcore`, and their use without an event loop for `wfcore.sync`."""
