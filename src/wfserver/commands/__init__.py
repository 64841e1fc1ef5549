"""The commands: one module for each noun, imported when it is called."""
