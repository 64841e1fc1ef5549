"""Files of workflow definitions and of scenarios: read, checked, played; and steps' packages."""
