"""The loops of a server: workers run steps, a scheduler fires what is due, callbacks go out."""
