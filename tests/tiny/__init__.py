"""A second format, so small that it shows what the seam takes: each version is one JSON object `_tiny_log/<number>`.

It knows nothing of Delta. What is there is never written over, cleaned up or vacuumed.
"""
