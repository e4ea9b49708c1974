"""Export of sampled judged answers to a table for people to label, and its import."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from pathlib import Path

from yarus.db.errors import InputError
from yarus.db.stores import labels as store
from yarus.db.stores.labels import Label
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.annotation_tables import spreadsheets
from yarus.tasks.dataset.annotation_tables.columns import NO, YES
from yarus.tasks.dataset.annotation_tables.spreadsheets import (
    Cell,
    Line,
    annotation_error,
    annotation_problem,
    column_heading,
    column_positions,
    find_cell,
    rejected_table_error,
)
from yarus.tasks.dataset.annotation_tables.workbook import WorkbookLayout
from yarus.tasks.dataset.dataset_schema import LabelSample, LabelSampleImport
from yarus.tasks.dataset.labelling.alpha import parse_annotator
from yarus.tasks.dataset.labelling.answers import TEXT_COLUMNS, JudgedAnswers, load_answers
from yarus.tasks.dataset.labelling.corrected import store_all_corrections
from yarus.tasks.dataset.labelling.sampling import sampling_order

COLUMNS: tuple[str, ...] = ("case_id", "evaluation", "metric", "probability", "shown", *TEXT_COLUMNS, "label", "note")
"""Columns of the table; the heading of `label` contains the question of the metric."""
REQUIRED = ("case_id", "evaluation", "metric", "probability", "shown", "label", "note")
PARTLY_WORDS = {"отчасти", "частично", "partly", "partially"}
HEADINGS = "annotation.judged_columns"
PROBABILITY_TOLERANCE = 1e-6
"""Tolerance for a probability after a spreadsheet has rounded it."""


def export_label_sample(path: Path, evaluation: str, metric: str | None, n: int, *, seed: int = 0) -> LabelSample:
    """Export randomly sampled answers for people to label, stratified by score and status.

    Args:
        path: path of a .csv or .xlsx file.
        evaluation: an evaluation id, its beginning or end, or `last`.
        metric: judged mean that the labels correct; by default the first of the evaluation.
        n: number of answers; all answers if there are fewer.
        seed: seed of the sample; 0 gives the answers that the labelling page shows first.

    Raises:
        InputError: the evaluation has nothing to label, or the file cannot be written.
    """
    judged_answers = load_answers(database(), evaluation, metric)
    sampling_seed = judged_answers.evaluation_id if seed == 0 else f"{judged_answers.evaluation_id}|{seed}"
    sampled_cases = sampling_order(judged_answers.ids, judged_answers.strata, seed=sampling_seed)[:n]
    counts = Counter(case.stratum for case in sampled_cases)
    header = [texts(HEADINGS, get_settings().language)[name] for name in COLUMNS]
    lines = (_format_row(judged_answers, case.row, counts[case.stratum] / case.stratum_size) for case in sampled_cases)
    spreadsheets.write_table(path, header, lines, _build_layout())
    return {
        "file": str(path),
        "source": judged_answers.source,
        "evaluation_id": judged_answers.evaluation_id,
        "metric": judged_answers.metric.name,
        "n_sampled": len(sampled_cases),
        "cases": len(judged_answers.cases),
        "strata": dict(sorted(counts.items())),
    }


def import_label_sample(path: Path, header: Sequence[str], lines: Sequence[Line], annotator: str) -> LabelSampleImport:
    """Import people's labels of sampled answers; import nothing if any row is invalid.

    Args:
        path: path of the table.
        header, lines: content of the table.
        annotator: name of the annotator.

    Raises:
        InputError: lists up to 20 problems with their rows.
    """
    name, columns = parse_annotator(annotator), column_positions(header, HEADINGS)
    if missing := [repr(column_heading(HEADINGS, column)) for column in REQUIRED if column not in columns]:
        problem = "not drawn" if "probability" not in columns else "columns"
        raise annotation_error(problem, path=path, names=", ".join(missing))
    rows = [(number, {column: find_cell(cells, columns, column) for column in REQUIRED}) for number, cells in lines]
    answers = {pair: _try_load(*pair) for pair in {(row["evaluation"].text, row["metric"].text) for _, row in rows}}
    problems: list[str] = []
    labels: dict[tuple[str, str, str], Label] = {}
    for number, row in rows:
        try:
            label = _parse_label(row, answers[row["evaluation"].text, row["metric"].text], name)
            if label and (key := (label.evaluation_id, label.metric, label.case_id)) in labels:
                raise ValueError(annotation_problem("case twice", given=label.case_id))
            if label:
                labels[key] = label
        except ValueError as error:
            problems.append(f"{annotation_problem('row', number=number)}: {error}")
    problems += [] if problems else _find_contradictions(labels.values())
    if problems:
        raise rejected_table_error(path, problems)
    store.save_labels(database(), labels.values())
    for source, tier in sorted({(label.source, label.tier) for label in labels.values()}):
        store_all_corrections(database(), source, tier)
    return {
        "annotator": name,
        "rows": len(rows),
        "labelled": sum(label.value is not None for label in labels.values()),
        "empty": len(rows) - len(labels),
        "metrics": dict(sorted(Counter(label.metric for label in labels.values() if label.value is not None).items())),
        "evaluations": sorted({label.evaluation_id for label in labels.values()}),
    }


def is_label_sample(header: Sequence[str]) -> bool:
    """Return whether a table's header is one of sampled judged answers."""
    return {"case_id", "metric", "label"} <= column_positions(header, HEADINGS).keys()


def _build_layout() -> WorkbookLayout:
    workbook_texts = texts("annotation.workbook", get_settings().language)
    label = COLUMNS.index("label")
    return WorkbookLayout(
        title=workbook_texts["answers"],
        choices={label: (workbook_texts["yes"], workbook_texts["no"], workbook_texts["partly"])},
        input_columns=frozenset((label, COLUMNS.index("note"))),
        guide=(workbook_texts["guide"], workbook_texts["how judged"].strip().split("\n")),
    )


def _format_row(judged_answers: JudgedAnswers, row: int, probability: float) -> list[str]:
    values = judged_answers.texts_for_people(row, leaves=True) | {
        "case_id": judged_answers.ids[row],
        "evaluation": judged_answers.evaluation_id,
        "metric": judged_answers.metric.name,
        "probability": repr(probability),
        "shown": judged_answers.digest(row),
    }
    return [values.get(column, "") for column in COLUMNS]


def _try_load(evaluation: str, metric: str) -> JudgedAnswers | str:
    """Return the answers that rows name, or the problem with the name."""
    if not evaluation or not metric:
        return annotation_problem("no evaluation")
    try:
        return load_answers(database(), evaluation, metric)
    except (InputError, OSError) as error:
        return str(error)


def _parse_label(row: Mapping[str, Cell], answers_or_problem: JudgedAnswers | str, annotator: str) -> Label | None:
    """Return the label of a row, or None if the row is not filled in.

    Raises:
        ValueError: the row is invalid.
    """
    value, note = _parse_value(row["label"]), row["note"].text.replace("\0", "").strip()
    if value is None and not note:
        return None
    if isinstance(answers_or_problem, str):
        raise ValueError(answers_or_problem)
    answers, case_id = answers_or_problem, row["case_id"].text
    if case_id not in answers.row_by_case:
        raise ValueError(annotation_problem("no case", given=case_id, evaluation=answers.evaluation_id))
    answer_row = answers.row_by_case[case_id]
    if row["shown"].text != answers.digest(answer_row):
        raise ValueError(annotation_problem("other answer", given=case_id))
    return answers.label(answer_row, annotator, value, note or None, probability=_parse_probability(row["probability"]))


def _parse_value(cell: Cell) -> float | None:
    word = cell.text.strip(" .!").casefold()
    if not word:
        return None
    if word in PARTLY_WORDS:
        return 0.5
    value = float(word in YES) if word in YES | NO else _parse_number(word)
    if cell.is_date or not 0 <= value <= 1:
        raise ValueError(annotation_problem("no label", given=cell.text))
    return value


def _parse_probability(cell: Cell) -> float:
    value = _parse_number(cell.text)
    if not 0 < value <= 1:
        raise ValueError(annotation_problem("no probability", given=cell.text))
    return value


def _parse_number(text: str) -> float:
    """Parse a number; return NaN if the text is not a number."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return nan


def _find_contradictions(labels: Iterable[Label]) -> Iterator[str]:
    """Yield the strata whose probabilities differ, or are below the share of their answers in the file."""
    by_stratum: dict[tuple[str, str, str], list[Label]] = defaultdict(list)
    for label in labels:
        by_stratum[label.evaluation_id, label.metric, label.stratum].append(label)
    for group in by_stratum.values():
        low, high = min(label.probability for label in group), max(label.probability for label in group)
        if high - low > PROBABILITY_TOLERANCE or low < len(group) / group[0].stratum_size - PROBABILITY_TOLERANCE:
            yield annotation_problem("changed probability", case=group[0].case_id, low=f"{low:g}", high=f"{high:g}")
