"""What tests, the demo and benchmarks share: Spark sessions with Delta, an S3 server on loopback.

Owns nothing that the product needs, and no part of the product calls it.
"""
