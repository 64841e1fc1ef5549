"""Settings: from the environment, a file and the command line to one frozen record."""
