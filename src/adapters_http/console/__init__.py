"""Pages for people: an inbox, approvals with their rows, ways in and out. Decisions 125 to 127."""
