"""`lakecommit demo`: streams and batch writes into a table, with kills, read back and compared.

Owns the jobs and what it shows of them, and no part of the product. Called by the command line; benchmarks and tests
take its places.
"""
