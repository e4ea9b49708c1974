"""Corrected means of two evaluations: the difference that people would see."""

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from db.stores.labels import labels_by_judge
from metrics.statistics.differences.corrected import compare_corrected
from metrics.statistics.differences.numbers import Compared
from metrics.table import metric
from metrics.table.corrected import SUFFIX
from tasks.comparison.common_cases import common
from tasks.labelling.answers import Answers, judged, of_row
from tasks.labelling.corrected import labels_for
from tasks.labelling.estimate import FEWEST, together

FEW_LABELS = "too few labels of people"
OTHER_JUDGE = "other judges have scored the two, and labels hold for one"


def is_corrected(name: str) -> bool:
    """Whether it names a mean as people's labels correct it."""
    return name.endswith(SUFFIX)


def lacking(n_labels: int | None) -> int:
    """How many labels are missing before a corrected mean is acted on; 0 where there are enough."""
    return max(0, FEWEST - (n_labels or 0))


def compare_means(engine: Engine, a: RowMapping, b: RowMapping, name: str) -> Compared | str:
    """The difference of a corrected mean over the common cases of two evaluations, or why there is none.

    Args:
        engine: of our own database.
        a, b: rows of the journal: before and after.
        name: of the corrected metric.
    """
    of = name.removesuffix(SUFFIX)
    keys = [judged(row).get(of) for row in (a, b)]
    if keys[0] is None or keys[0] != keys[1]:
        return OTHER_JUDGE
    said = labels_for(labels_by_judge(engine, b["source"], b["tier"], [keys[0]]), of, keys[0])
    both = [of_row(row, metric(of), keys[0], texts=False) for row in (a, b)]
    pairs = common(*(answers.cases for answers in both))
    sides = [_common(answers, cases) for answers, cases in zip(both, pairs, strict=True)]
    found = compare_corrected(*(together(answers, said) for answers in sides), better=metric(name).better)
    return FEW_LABELS if lacking(found.comparison.n) else found


def _common(answers: Answers, cases: pa.Table) -> Answers:
    kept = answers.cases.filter(pc.is_in(answers.cases["case_id"], value_set=cases["case_id"].combine_chunks()))
    return Answers(answers.evaluation_id, answers.source, answers.tier, answers.metric, answers.judge_key, kept)
