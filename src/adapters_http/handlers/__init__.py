"""What each route does: ask the core, show what it says."""
