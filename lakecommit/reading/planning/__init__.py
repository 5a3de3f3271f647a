"""The planner of a stream that reads a table: which splits each batch has, and when it lets go of what it knows.

It owns offsets, the plan of a snapshot, limits and the use of a lease; neither files nor leases themselves. `spark_ext`
calls it, in the one process that plans a query.
"""
