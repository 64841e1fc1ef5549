"""The handlers of the routes: each calls a use case and returns a view."""
