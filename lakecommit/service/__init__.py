"""The committers of a process behind one door: requests from Spark's workers, in Avro over a private socket.

`dispatch` puts the stages of a table together, `tables` lets go of those that nobody needs. Knows no Spark. Called by
Spark's side.
"""
