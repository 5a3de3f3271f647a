"""What tests, the demo and benchmarks share: Spark sessions with Delta, an S3 server on loopback."""
