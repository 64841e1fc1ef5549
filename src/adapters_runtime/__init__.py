"""What runs and keeps time: step runner, dispatcher, sweeper, clock, templates."""
