"""What stands beside the metrics of an evaluation, in its document and in the journal."""

from typing_extensions import TypedDict

from yarus.tasks.evaluation.findings.exam import Exam
from yarus.tasks.evaluation.findings.failures import Failures
from yarus.tasks.evaluation.findings.incomplete import Incomplete
from yarus.tasks.evaluation.findings.persistence import FailedAgain, Persistence
from yarus.tasks.evaluation.findings.production import Production
from yarus.tasks.evaluation.findings.showing import Showing


class FoundOut(TypedDict, total=False):
    """What the cases of an evaluation tell beside its metrics; each tier has some of these."""

    exam: Exam
    """Prompt -> what its exam says, of tier `judge`."""
    failures: Failures
    """Of tiers that tell where a case failed."""
    doubtful: int
    """How many cases the tier would have read next: the least useful answers, wrong decisions and so on."""
    incomplete: Incomplete
    showing: Showing
    production: Production
    persistence: Persistence
    """Of an evaluation that asks again what changed in another one, and of that other one."""
    failed_again: FailedAgain
    """Of an evaluation of the cases that failed in another one."""
