"""
What keeps a code step to itself: namespaces, mounts, Landlock, seccomp, identity.

Standard library only: the spawner and the supervisors import it, in a bare interpreter.
"""
