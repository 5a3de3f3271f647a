"""The demo: a stream and a batch of orders into one table, read back by two readers and compared."""
