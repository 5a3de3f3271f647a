"""Object stores and local disk behind one small Protocol per verb; outcomes are values.

Store SDKs are imported here alone. Knows nothing of tables, epochs or manifests. Everybody above may call it.
"""
