"""What a task may be told about how to write; plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakecommit.expressions.bound import Session

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How big files get and how much memory a task may take; `memory_bound_bytes` says what that comes to.

    `max_records_per_file` of 0 means no limit. `local_dir` is where large files and sorted runs are kept until they are
    uploaded; None means the system's directory for temporary files. `event_time_column` is the name of a top-level
    column, the range of whose values is kept of each file; None keeps none. `session` is what the table's expressions
    depend on.
    """

    target_file_size_bytes: int = 128 * MIB
    max_records_per_file: int = 0
    compression: str = "zstd"
    local_dir: str | None = None
    event_time_column: str | None = None
    session: Session = field(default_factory=Session)

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

    @property
    def memory_bound_bytes(self) -> int:
        """What a task takes at most beyond the interpreter and its libraries, however many rows and partition values.

        Not counted are about two kilobytes for every file (the report names them all) and single rows that are larger
        than a row group. Mapped pages of local files count as memory here, though the system can drop them.
        """
        waiting_rows = self.buffer_bytes + 4 * self.chunk_bytes
        # A sort holds its rows twice. While a row group is encoded, its pages are there beside its rows.
        sorting = 2 * self.spill_bytes
        encoding = 2 * self.row_group_bytes
        open_files = (self.open_partitions + 1) * self.spool_bytes
        uploading = max(self.pending_bytes, 2 * self.target_file_size_bytes)
        return waiting_rows + sorting + encoding + open_files + uploading
