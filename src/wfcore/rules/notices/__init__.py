"""Who is told of what, and how often it is tried."""
