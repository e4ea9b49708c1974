"""What a check found."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One thing that was checked."""

    what: str
    found: str
    way_out: str = ""
    """What to do; it may be worth doing where nothing is broken, too."""
    code: int = 0
    """0 fine, 2 a setting to mend, 3 something outside to mend."""
