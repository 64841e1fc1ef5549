"""What `wfcore` offers ready to use: services with all parts, and a door without an event loop."""
