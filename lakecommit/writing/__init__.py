"""What a writer task does: Arrow record batches in, Parquet data files and manifests out. No Spark."""
