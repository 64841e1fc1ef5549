"""The isolation of a code step: namespaces, mounts, Landlock, seccomp, identity."""
