"""`lakecommit demo`: streams and batch writes into a table, with kills, read back and compared."""
