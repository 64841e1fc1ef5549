"""The parts of the documentation that are generated from the code, for Sphinx and tests."""
