"""Commands as a person runs them."""

import os
import pty
import subprocess


def on_a_terminal(command):
    """What a command that ends well shows on a terminal, progress bars included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # Linux: the other side was closed.
        assert process.wait() == 0
    os.close(ours)
    return shown.decode()
