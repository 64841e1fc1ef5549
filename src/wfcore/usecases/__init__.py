"""What callers can ask: one unit of work each, over the ports."""
