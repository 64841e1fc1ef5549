"""What keeps a code step to itself: namespaces, mounts, Landlock, seccomp, identity."""
