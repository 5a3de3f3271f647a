"""What Spark sees: the data source, its writers, and the committer's life in the driver."""
