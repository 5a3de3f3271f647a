"""What `lakecommit recover` does, without Spark: commit, export or give up what a query has left.

Uses the same stages as a driver; only the decisions that need a person's word are here. Surveys change nothing, so that
the command line can show what would be done. Called by the command line.
"""
