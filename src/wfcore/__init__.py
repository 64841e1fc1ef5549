"""
wfcore: a workflow engine as a library.

The package is the inside of a hexagon. `model` holds frozen records, `rules` pure functions
and tables over them, `ports` what the outside must supply, `usecases` one unit of work each.
Nothing here knows of HTTP, SQL, clocks or processes; adapters bring those.
"""

__version__ = "0.1.0"
