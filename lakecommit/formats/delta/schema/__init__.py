"""What rows and files a Delta table takes: columns, mapping, statistics, properties and features."""
