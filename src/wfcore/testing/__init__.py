"""For tests, ours and yours. Needs pytest and hypothesis; never imported by shipped code."""
