"""Pages for people: an inbox, approvals with their rows, sign-in and sign-out. Decision 125."""
