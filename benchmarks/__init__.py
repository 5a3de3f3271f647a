"""Named workloads, each against its peers in the same run."""
