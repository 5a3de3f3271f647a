"""Reading tables, as a batch and as a stream.

It owns what is read, in which order and how a task makes rows of it, and no lease, no version and no file. `spark_ext`
calls it; `planning` is the streaming source's part of it.
"""
