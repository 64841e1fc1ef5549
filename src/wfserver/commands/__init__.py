"""The commands, one file for each noun, however small. Imported when called."""
