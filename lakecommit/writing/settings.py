"""What a task may be told about how to write; plain data."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How big files get and how much memory a task may take.

    A task's memory beyond the interpreter and its libraries is bounded by

        buffer_bytes + spill_bytes + pending_bytes + 4 * chunk_bytes + (open_partitions + 1) * spool_bytes
        + what encoding one row group takes: about twice row_group_bytes

    plus two files of the target size where they are larger than `pending_bytes`, plus about a kilobyte for every file
    (the report names them all). It depends neither on the number of rows nor on the number of partition values.

    `max_records_per_file` of 0 means no limit. `local_dir` is where large files and sorted runs are kept until they are
    uploaded; None means the system's directory for temporary files.
    """

    target_file_size_bytes: int = 128 * MIB
    max_records_per_file: int = 0
    compression: str = "zstd"
    local_dir: str | None = None

    row_group_bytes: int = 64 * MIB
    row_group_rows: int = 1_000_000
    buffer_bytes: int = 128 * MIB
    chunk_bytes: int = 8 * MIB
    open_partitions: int = 16
    spill_bytes: int = 64 * MIB
    spool_bytes: int = 4 * MIB

    parallel_uploads: int = 8
    pending_bytes: int = 256 * MIB
    manifest_bytes: int = 64 * MIB
    manifest_files: int = 256
