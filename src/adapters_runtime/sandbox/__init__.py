"""The sandbox of a code step: spawner, supervisor, and the process that is confined."""
