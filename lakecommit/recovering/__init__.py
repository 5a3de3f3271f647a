"""What `lakecommit recover` does, without Spark: commit, export or give up what a query has left.

Uses the same stages as a driver; only the decisions that need a person's word are here. Called by the command line.
"""
