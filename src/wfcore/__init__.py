"""
wfcore: a workflow engine as a library.

The package is the inside of a hexagon. `model` holds frozen records, `rules` pure functions
and tables over them, `ports` what the outside must supply, `usecases` one unit of work each.
Nothing here knows of HTTP, SQL, clocks or processes; adapters bring those.

The public names can be had from here: `from wfcore import advance`. `__init__.pyi` lists them.
"""

from wfcore._exports import exports

__version__ = "0.1.0"
__all__, __getattr__, __dir__ = exports(__name__)
