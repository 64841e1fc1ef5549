"""Code steps: languages, environment, output, artifacts, packages."""
