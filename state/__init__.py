"""The durable records: Avro schemas and codecs, the grammar of names, all listing and reading of seals and manifests.
The names of leases and of what vacuums put are here, too.

A record is checked when it is written and when it is read. What several of them say together, and against the table's
marks, is for `restarting` and `releasing`. Called by every stage.
"""
