"""The bundled server: settings, composition of the adapters, command line."""
