"""Export of questions to an annotation table with empty columns, and import of the filled table."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yarus.db import journal
from yarus.db.source_rows import QuestionRow, read_corpus, read_questions
from yarus.db.sources import Source, open_snapshot
from yarus.tasks.cases.labels import count_labels
from yarus.tasks.cases.outcomes import reference_answer
from yarus.tasks.cases.privacy.masking import load_own_key, mask, restore_originals
from yarus.tasks.cases.privacy.pseudonyms import should_mask
from yarus.tasks.cases.table import Case
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.annotation_tables import spreadsheets
from yarus.tasks.dataset.annotation_tables.candidates import (
    MAX_PASSAGES,
    build_passage_rows,
    labelling_priority,
    load_corpus_texts,
    select_candidates,
    summarize_passages,
)
from yarus.tasks.dataset.annotation_tables.columns import (
    COLUMNS,
    HEADINGS,
    NONE,
    REQUIRED_COLUMNS,
    VERDICT_COLUMNS,
    YES_NO,
    ReferenceIndex,
    build_reference_index,
    column_headings,
    find_references,
    parse_yes_no,
    workbook_layout,
)
from yarus.tasks.dataset.annotation_tables.reviews import Review, store_verdicts
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
from yarus.tasks.dataset.dataset_schema import AnnotationExport, AnnotationImport
from yarus.tasks.dataset.labelling.alpha import is_annotator_name
from yarus.tasks.dataset.nuggets import format_nuggets, nuggets_of, parse_nuggets
from yarus.tasks.evaluation import result_files

LOG_ANSWER = "log"
"""Value of `answer_of` for the answer that the bot gave in the log."""


def export_annotation_file(
    path: Path, source_name: str, evaluations: Sequence[str] = (), *, limit: int | None = None
) -> AnnotationExport:
    """Export the questions of a source for people to label, the most informative first.

    Args:
        path: path of a .csv or .xlsx file.
        source_name: name of a loaded source, or `production`.
        evaluations: evaluations whose answers and rankings are shown and determine the order; the first with an answer
            is used.
        limit: maximum number of questions.

    Raises:
        InputError: the source or an evaluation does not exist, an evaluation has another source, or the file cannot be
            written.
    """
    data_source = open_source(source_name)
    cases = _load_cases(evaluations, data_source.name)
    with open_snapshot(data_source) as connection:
        questions = read_questions(connection, data_source)
        corpus = read_corpus(connection, data_source, vectors=False)
    weights = {
        row["question_id"]: labelling_priority(
            [case for _, case in cases.get(row["question_id"], ())], answerable=row.get("answerable")
        )
        for row in questions
    }
    questions.sort(key=lambda row: -sum(weights[row["question_id"]].values()))
    selected, texts, language = questions[:limit], load_corpus_texts(corpus), get_settings().language
    rows, passages = [], []
    for row in selected:
        pairs = cases.get(row["question_id"], ())
        names = select_candidates(row, next((case["retrieved"] for _, case in pairs if case.get("retrieved")), None))
        rows.append(
            _line(data_source, row, pairs, weights[row["question_id"]], summarize_passages(names, texts), language)
        )
        passages += build_passage_rows(row["question_id"], rows[-1][COLUMNS.index("question")], names, texts)
    spreadsheets.write_table(path, column_headings(language), rows, workbook_layout(passages[:MAX_PASSAGES], language))
    return {
        "file": str(path),
        "source": data_source.name,
        "questions": len(rows),
        "evaluations": list(evaluations),
        "disagreement": sum("disagreement" in weights[row["question_id"]] for row in selected),
        "failure": sum("failure" in weights[row["question_id"]] for row in selected),
    }


def import_annotation_file(path: Path, annotator: str, into: str | None = None) -> AnnotationImport:
    """Import people's labels; import nothing if any row of the file is invalid.

    Args:
        path: path of a .csv or .xlsx file from `export_annotation_file`, filled in and saved.
        annotator: name of the annotator.
        into: source that receives the labels; by default the one in the file.

    Raises:
        InputError: lists up to 20 problems with their rows and columns.
    """
    name = annotator.strip()
    if not is_annotator_name(name):
        raise annotation_error("annotator", given=annotator)
    header, lines = spreadsheets.read_table(path)
    columns = column_positions(header, HEADINGS)
    if missing := [repr(column_heading(HEADINGS, column)) for column in REQUIRED_COLUMNS if column not in columns]:
        raise annotation_error("columns", path=path, names=", ".join(missing))
    data_source = open_source(into or _source_in_file(path, lines, columns))
    if data_source.kind == "production":
        raise annotation_error("production")
    with open_snapshot(data_source) as connection:
        rows_by_id = {row["question_id"]: row for row in read_questions(connection, data_source, all_rows=True)}
        corpus = read_corpus(connection, data_source, vectors=False)
    problems: list[str] = []
    verdicts = _parse_verdicts(lines, columns, rows_by_id, build_reference_index(corpus), problems)
    if problems:
        raise rejected_table_error(path, problems)
    n_rejected = store_verdicts(data_source, verdicts, name)
    with open_snapshot(data_source) as connection:
        questions = read_questions(connection, data_source)
    after, before = count_labels(questions), count_labels([rows_by_id[row["question_id"]] for row in questions])
    filled_columns = [set(verdict) & set(VERDICT_COLUMNS) for verdict in verdicts.values()]
    counts = Counter(column for row_columns in filled_columns for column in row_columns)
    return {
        "source": data_source.name,
        "annotator": name,
        "rows": len(lines),
        "labelled": len(verdicts),
        "n_partially_filled": sum(not {*YES_NO, "relevant"} <= row_columns for row_columns in filled_columns),
        "empty": len(lines) - len(verdicts),
        "rejected": n_rejected,
        "question_ok": counts["question_ok"],
        "answer_ok": counts["answer_ok"],
        "show": counts["show"],
        "relevant": counts["relevant"],
        "nuggets": counts["nuggets"],
        "notes": counts["notes"],
        "unit": after.unit,
        "unit_before": before.unit,
        "n_labelled": after.labelled,
        "n_chunks": after.chunks,
    }


def _load_cases(evaluations: Sequence[str], source_name: str) -> dict[str, list[tuple[str, Case]]]:
    """Return question -> (evaluation id, row) for its rows in the evaluations."""
    cases_by_question: dict[str, list[tuple[str, Case]]] = defaultdict(list)
    for name in evaluations:
        row = journal.find_evaluation(database(), name)
        if row["source"] != source_name:
            raise annotation_error("other source", name=name, theirs=row["source"], ours=source_name)
        if row["parquet"] is None:
            raise annotation_error("no file", name=name, state=row["state"])
        for case in result_files.read_results(row["parquet"]).to_pylist():
            if case["question_id"] is not None:
                cases_by_question[case["question_id"]].append((row["id"], case))
    return cases_by_question


def _line(
    data_source: Source,
    row: QuestionRow,
    cases: Sequence[tuple[str, Case]],
    weights: Mapping[str, float],
    retrieved: str,
    language: str,
) -> list[str]:
    answers = [(name, case["answer"]) for name, case in cases if case.get("answer")]
    answers = answers or ([(LOG_ANSWER, row["answer"])] if row["answer"] else [])
    reasons = texts("annotation.reasons", language)
    values = {
        "question_id": row["question_id"],
        "source": data_source.name,
        "why": ", ".join(f"{reasons[name]} {value:g}" for name, value in weights.items()),
        "question": row["question"],
        "answer": answers[0][1] if answers else "",
        "answer_of": answers[0][0] if answers else "",
        "other_answers": "\n\n".join(f"{name}: {answer}" for name, answer in answers[1:]),
        "reference": reference_answer(row) or "",
        "retrieved": retrieved,
        "nuggets": format_nuggets(nuggets_of(row)),
    }
    if should_mask(data_source.name, unset=True):
        key = load_own_key()
        masked_columns = ("question", "answer", "other_answers", "reference", "nuggets")
        values |= {name: mask(values[name], key, language) for name in masked_columns}
    return [values.get(name, "") for name in COLUMNS]


def _source_in_file(path: Path, lines: Sequence[Line], columns: Mapping[str, int]) -> str:
    names = sorted({find_cell(cells, columns, "source").text for _, cells in lines} - {""})
    if len(names) != 1:
        raise annotation_error("sources", path=path, names=", ".join(names) or "—")
    return names[0]


def _parse_verdicts(
    lines: Sequence[Line],
    columns: Mapping[str, int],
    rows_by_id: Mapping[str, QuestionRow],
    index: ReferenceIndex,
    problems: list[str],
) -> dict[str, Review]:
    """Return the verdicts by question, without empty rows; append problems to `problems`."""
    verdicts: dict[str, Review] = {}
    rows: dict[str, int] = {}
    for number, cells in lines:
        verdict = {}
        question = find_cell(cells, columns, "question_id")
        for name in VERDICT_COLUMNS:
            try:
                verdict[name] = _parse_cell(name, find_cell(cells, columns, name), index)
            except ValueError as error:
                problems.append(
                    f"{annotation_problem('row', number=number)}, {column_heading(HEADINGS, name)}: {error}"
                )
        verdict = {name: value for name, value in verdict.items() if value is not None}
        if question.text in rows_by_id and "nuggets" in verdict:
            verdict |= _edited_nuggets(verdict.pop("nuggets"), rows_by_id[question.text])
        if question.text not in rows_by_id:
            problems.append(f"{annotation_problem('row', number=number)}: {_unknown_question(question)}")
        elif verdict and question.text in verdicts:
            problem = annotation_problem("twice", given=question.text, other=rows[question.text])
            problems.append(f"{annotation_problem('row', number=number)}: {problem}")
        elif verdict:
            answer_source = {"answer_of": find_cell(cells, columns, "answer_of").text} if "answer_ok" in verdict else {}
            verdicts[question.text] = verdict | answer_source
            rows[question.text] = number
    return verdicts


def _edited_nuggets(edited_text: str, row: QuestionRow) -> dict[str, str]:
    """Return the nuggets if they were changed; pseudonyms of the file are replaced by the original texts."""
    original = format_nuggets(nuggets_of(row))
    originals = (original, row["question"], row["answer"], reference_answer(row))
    edited = format_nuggets(parse_nuggets(restore_originals(edited_text, filter(None, originals), load_own_key())))
    return {} if edited == format_nuggets(parse_nuggets(original)) else {"nuggets": edited}


def _unknown_question(cell: Cell) -> str:
    if cell.is_date:
        return annotation_problem("date for id", given=cell.text)
    return annotation_problem("question", given=cell.text) if cell.text else annotation_problem("no id")


def _parse_cell(name: str, cell: Cell, index: ReferenceIndex) -> Any:
    if name in YES_NO:
        return parse_yes_no(cell)
    if name == "notes":
        return cell.text.replace("\0", "") or None
    if cell.is_date:
        raise ValueError(annotation_problem("date for text" if name == "nuggets" else "date for ids", given=cell.text))
    if not cell.text:
        return None
    if name == "nuggets":
        return (
            ""
            if cell.text.strip(" .").casefold() in NONE
            else format_nuggets(parse_nuggets(cell.text.replace("\0", "")))
        )
    is_none = cell.text not in index.names and cell.text.strip(" .").casefold() in NONE
    return find_references("" if is_none else cell.text, index)
