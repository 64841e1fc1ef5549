"""The data folder: made, checked, filled at the first start, sealed, backed up and restored."""
