"""What the parameters of an evaluation came to: part of its row in the journal."""

from yarus.tasks.cases.vocabulary import Note
from yarus.tasks.results.found_out.documents import FoundOut
from yarus.tasks.results.system import System


class Resolved(System, FoundOut, total=False):
    """In JSON; empty until the cases are loaded, and then with what the tier has."""

    notes: list[Note]
    """What was met, for people to know."""
