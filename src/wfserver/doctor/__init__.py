"""What works on this machine and with this store, and what to do about the rest."""
