"""What isolates a code step: namespaces, mounts, Landlock, seccomp, identity."""
