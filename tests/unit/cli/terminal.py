"""Commands as a person runs them."""

import os
import pty
import subprocess
import sys
from pathlib import Path


def script():
    return str(Path(sys.executable).with_name("lakecommit"))


def on_a_terminal(command, columns=200, exit_code=0):
    """What a command shows on a terminal, progress bars included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # Linux: the other side was closed.
        assert process.wait() == exit_code, shown
    os.close(ours)
    return shown.decode()
