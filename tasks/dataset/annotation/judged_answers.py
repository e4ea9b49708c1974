"""Answers that a judge has scored, drawn at random into a table for people to label, and back."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from pathlib import Path

from yarus.db.errors import InputError
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.annotation import spreadsheets
from yarus.tasks.dataset.annotation.columns import NO, YES
from yarus.tasks.dataset.annotation.spreadsheets import Cell, Line, cell_of, heading, positions, rejected, said, wrong
from yarus.tasks.dataset.annotation.workbook import Look
from yarus.tasks.dataset.dataset_schema import Drawn, LabelsImported
from yarus.tasks.dataset.labelling.alpha import annotator as named
from yarus.tasks.dataset.labelling.answers import SHOWN, Answers, answers
from yarus.tasks.dataset.labelling.corrected import correct_all
from yarus.tasks.dataset.labelling.draw import drawn

COLUMNS: tuple[str, ...] = ("case_id", "evaluation", "metric", "probability", "shown", *SHOWN, "label", "note")
"""Of the table; what is asked of a metric stands in the heading of `label`."""
NEEDED = ("case_id", "evaluation", "metric", "probability", "shown", "label", "note")
PARTLY = {"отчасти", "частично", "partly", "partially"}
HEADINGS = "annotation.judged_columns"
AS_WRITTEN = 1e-6
"""How far a probability may be off what it was, after a spreadsheet has had it."""


def export_drawn(path: Path, evaluation: str, metric: str | None, n: int, *, seed: int = 0) -> Drawn:
    """Writes answers drawn at random, by the judge's score and the status, for people to label.

    Args:
        path: a .csv or .xlsx.
        evaluation: an id, the beginning or end of one, or `last`.
        metric: the judged mean that labels are to correct; by default the first of the evaluation.
        n: how many; all where there are fewer.
        seed: other seeds draw others; 0 begins with those that the page asks about first.

    Raises:
        InputError: nothing to label, or a file that cannot be written.
    """
    of = answers(database(), evaluation, metric)
    own = of.evaluation_id if seed == 0 else f"{of.evaluation_id}|{seed}"
    chosen = drawn(of.ids, of.strata, seed=own)[:n]
    counts = Counter(one.stratum for one in chosen)
    header = [texts(HEADINGS, settings().language)[name] for name in COLUMNS]
    lines = (_line(of, one.row, counts[one.stratum] / one.stratum_size) for one in chosen)
    spreadsheets.write(path, header, lines, _look())
    return {
        "file": str(path),
        "source": of.source,
        "evaluation_id": of.evaluation_id,
        "metric": of.metric.name,
        "drawn": len(chosen),
        "cases": len(of.cases),
        "strata": dict(sorted(counts.items())),
    }


def import_drawn(path: Path, header: Sequence[str], lines: Sequence[Line], annotator: str) -> LabelsImported:
    """Takes over what people have said of drawn answers; nothing where any row is wrong.

    Args:
        path: of the table.
        header, lines: what it holds.
        annotator: whose labels they are.

    Raises:
        InputError: with up to 20 problems, each with its row.
    """
    name, at = named(annotator), positions(header, HEADINGS)
    if missing := [repr(heading(HEADINGS, column)) for column in NEEDED if column not in at]:
        why = "not drawn" if "probability" not in at else "columns"
        raise wrong(why, path=path, names=", ".join(missing))
    rows = [(number, {column: cell_of(cells, at, column) for column in NEEDED}) for number, cells in lines]
    known = {pair: _known(*pair) for pair in {(row["evaluation"].text, row["metric"].text) for _, row in rows}}
    problems: list[str] = []
    found: dict[tuple[str, str, str], Label] = {}
    for number, row in rows:
        try:
            label = _label(row, known[row["evaluation"].text, row["metric"].text], name)
            if label and (key := (label.evaluation_id, label.metric, label.case_id)) in found:
                raise ValueError(said("case twice", given=label.case_id))
            if label:
                found[key] = label
        except ValueError as error:
            problems.append(f"{said('row', number=number)}: {error}")
    problems += [] if problems else _contradictions(found.values())
    if problems:
        raise rejected(path, problems)
    store.save(database(), found.values())
    for source, tier in sorted({(label.source, label.tier) for label in found.values()}):
        correct_all(database(), source, tier)
    return {
        "annotator": name,
        "rows": len(rows),
        "labelled": sum(label.value is not None for label in found.values()),
        "empty": len(rows) - len(found),
        "metrics": dict(sorted(Counter(label.metric for label in found.values() if label.value is not None).items())),
        "evaluations": sorted({label.evaluation_id for label in found.values()}),
    }


def of_judged(header: Sequence[str]) -> bool:
    """Whether a table's header is one of judged answers."""
    return {"case_id", "metric", "label"} <= positions(header, HEADINGS).keys()


def _look() -> Look:
    said = texts("annotation.workbook", settings().language)
    label = COLUMNS.index("label")
    return Look(
        title=said["answers"],
        choices={label: (said["yes"], said["no"], said["partly"])},
        asked=frozenset((label, COLUMNS.index("note"))),
        guide=(said["guide"], said["how judged"].strip().split("\n")),
    )


def _line(of: Answers, row: int, probability: float) -> list[str]:
    shown = of.shown(row, leaves=True) | {
        "case_id": of.ids[row],
        "evaluation": of.evaluation_id,
        "metric": of.metric.name,
        "probability": repr(probability),
        "shown": of.digest(row),
    }
    return [shown.get(column, "") for column in COLUMNS]


def _known(evaluation: str, metric: str) -> Answers | str:
    """The answers that rows name, or what is wrong with the name."""
    if not evaluation or not metric:
        return said("no evaluation")
    try:
        return answers(database(), evaluation, metric)
    except (InputError, OSError) as error:
        return str(error)


def _label(row: Mapping[str, Cell], known: Answers | str, annotator: str) -> Label | None:
    """What a row says; None where nothing is filled in.

    Raises:
        ValueError: what is wrong with it.
    """
    value, note = _value(row["label"]), row["note"].text.replace("\0", "").strip()
    if value is None and not note:
        return None
    if isinstance(known, str):
        raise ValueError(known)
    of, case = known, row["case_id"].text
    if case not in of.row_of:
        raise ValueError(said("no case", given=case, evaluation=of.evaluation_id))
    at = of.row_of[case]
    if row["shown"].text != of.digest(at):
        raise ValueError(said("other answer", given=case))
    return of.label(at, annotator, value, note or None, probability=_probability(row["probability"]))


def _value(cell: Cell) -> float | None:
    word = cell.text.strip(" .!").casefold()
    if not word:
        return None
    if word in PARTLY:
        return 0.5
    value = float(word in YES) if word in YES | NO else _number(word)
    if cell.is_date or not 0 <= value <= 1:
        raise ValueError(said("no label", given=cell.text))
    return value


def _probability(cell: Cell) -> float:
    value = _number(cell.text)
    if not 0 < value <= 1:
        raise ValueError(said("no probability", given=cell.text))
    return value


def _number(text: str) -> float:
    """NaN where it is none."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return nan


def _contradictions(labels: Iterable[Label]) -> Iterator[str]:
    """Probabilities that no draw can have had: of one stratum all are equal, and at least the share that is here."""
    by_stratum: dict[tuple[str, str, str], list[Label]] = defaultdict(list)
    for label in labels:
        by_stratum[label.evaluation_id, label.metric, label.stratum].append(label)
    for alike in by_stratum.values():
        low, high = min(one.probability for one in alike), max(one.probability for one in alike)
        if high - low > AS_WRITTEN or low < len(alike) / alike[0].stratum_size - AS_WRITTEN:
            yield said("changed probability", case=alike[0].case_id, low=f"{low:g}", high=f"{high:g}")
