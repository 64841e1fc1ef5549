"""How the records lie in a SQL database, and how they get there."""
