"""Code steps: their languages, environment, output, artifacts and packages."""
