"""Approvals: the machine, the rows that a reviewer releases, and who must agree."""
