"""Pages for people: an inbox, approvals with their rows, ways in and out. Decision 125."""
