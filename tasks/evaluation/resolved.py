"""What the parameters of an evaluation came to: part of its row in the journal."""

from tasks.cases.vocabulary import Note
from tasks.results.exam.documents import Exam
from tasks.results.failures import Failures
from tasks.results.incomplete.documents import Incomplete
from tasks.results.showing.documents import Showing
from tasks.results.system import System


class Resolved(System, total=False):
    """In JSON; empty until the cases are loaded, and then with what the tier has."""

    notes: list[Note]
    """What was met, for people to know."""
    failures: Failures
    incomplete: Incomplete
    showing: Showing
    exam: Exam
    """Prompt -> what the exam said."""
