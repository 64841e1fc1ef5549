"""What starts a workflow by itself: schedules, chains, and when they may."""
