"""Memory of a process. Imported by full name."""

import re
from pathlib import Path


def peak_kb() -> int:
    """The most that this process has held; unlike getrusage's figure, nothing of the process that started it."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return int(found[1])
