"""What runs and keeps time: step runner, worker, scheduler, clock, templates."""
