"""Stage 1, on executors: Arrow batches to Parquet files, each named in a durable manifest before its upload begins.

Owns encoding, statistics, partition values and uploads. Never waits for the committer, and decides nothing about who
has won. Called by Spark's tasks.
"""
