"""What can be seen of a table and its writers: status, a watch, metrics, log lines. Reads only.

Called by the service and the command line.
"""
