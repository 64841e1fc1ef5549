"""What the documentation generates from the code: tables, listings, maps. For Sphinx and tests."""
