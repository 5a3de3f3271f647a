"""The durable records of writers and committer: what they are called, how they are encoded."""
