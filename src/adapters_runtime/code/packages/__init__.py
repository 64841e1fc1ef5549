"""The packages of code steps: pip and npm, and the folders of installed packages."""
