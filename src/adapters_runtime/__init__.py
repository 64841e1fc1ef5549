"""The adapters of a running server: worker, scheduler, step runners, clock, templates, notices."""
