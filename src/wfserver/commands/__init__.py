"""The commands, one file for each noun. Imported when called."""
