"""Serving, from the port to the last step: started, stopped, noted while it runs."""
