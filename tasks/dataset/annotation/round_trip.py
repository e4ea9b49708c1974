"""The way to people's labels and back: questions go out as a table with empty columns, and come back filled in."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yarus.db import journal
from yarus.db.source_rows import Row, read_corpus, read_questions
from yarus.db.sources import Source, snapshot
from yarus.tasks.cases.labels import labels_of
from yarus.tasks.cases.outcomes import reference_of
from yarus.tasks.cases.privacy.masking import mask, own_key, restored
from yarus.tasks.cases.privacy.pseudonyms import has_pseudonyms
from yarus.tasks.cases.table import Case
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.annotation import spreadsheets
from yarus.tasks.dataset.annotation.candidates import (
    MOST_PASSAGES,
    candidates,
    in_short,
    passages,
    priority,
    texts_of,
)
from yarus.tasks.dataset.annotation.columns import (
    COLUMNS,
    HEADINGS,
    NEEDED,
    NONE,
    VERDICTS,
    YES_NO,
    Known,
    headings,
    look,
    named,
    yes_no,
)
from yarus.tasks.dataset.annotation.columns import known as can_be_named
from yarus.tasks.dataset.annotation.reviews import Review, apply
from yarus.tasks.dataset.annotation.spreadsheets import Cell, Line, cell_of, heading, positions, rejected, said, wrong
from yarus.tasks.dataset.dataset_schema import Exported, Imported
from yarus.tasks.dataset.labelling.alpha import is_annotator
from yarus.tasks.dataset.nuggets import as_text, from_text, nuggets_of
from yarus.tasks.evaluation import result_files

LOG = "log"
"""Whose the answer is, where it is the one that the bot has given."""


def export(path: Path, source_name: str, evaluations: Sequence[str] = (), *, limit: int | None = None) -> Exported:
    """Writes the questions of a source for people to label, those first that a label would teach most about.

    Args:
        path: a .csv or .xlsx.
        source_name: a loaded source, or `production`.
        evaluations: whose answers and rankings are shown, and decide the order; the first that has an answer counts.
        limit: at most so many questions.

    Raises:
        InputError: no such source or evaluation, one of another source, or a file that cannot be written.
    """
    where = source(source_name)
    cases = _cases_of(evaluations, where.name)
    with snapshot(where) as connection:
        questions = read_questions(connection, where)
        corpus = read_corpus(connection, where, vectors=False)
    worth = {
        row["question_id"]: priority(
            [case for _, case in cases.get(row["question_id"], ())], answerable=row.get("answerable")
        )
        for row in questions
    }
    questions.sort(key=lambda row: -sum(worth[row["question_id"]].values()))
    chosen, known, language = questions[:limit], texts_of(corpus), settings().language
    rows, beside = [], []
    for row in chosen:
        of = cases.get(row["question_id"], ())
        named = candidates(row, next((case["retrieved"] for _, case in of if case.get("retrieved")), None))
        rows.append(_line(where, row, of, worth[row["question_id"]], in_short(named, known), language))
        beside += passages(row["question_id"], rows[-1][COLUMNS.index("question")], named, known)
    spreadsheets.write(path, headings(language), rows, look(beside[:MOST_PASSAGES], language))
    return {
        "file": str(path),
        "source": where.name,
        "questions": len(rows),
        "evaluations": list(evaluations),
        "disagreement": sum("disagreement" in worth[row["question_id"]] for row in chosen),
        "failure": sum("failure" in worth[row["question_id"]] for row in chosen),
    }


def import_(path: Path, annotator: str, into: str | None = None) -> Imported:
    """Takes over what people have filled in; nothing where any row of the file is wrong.

    Args:
        path: a .csv or .xlsx that `export` has written, filled in and saved by a spreadsheet.
        annotator: whose labels they are.
        into: the source that gets them; default: the one that the file names.

    Raises:
        InputError: with up to 20 problems, each with its row and column.
    """
    name = annotator.strip()
    if not is_annotator(name):
        raise wrong("annotator", given=annotator)
    header, lines = spreadsheets.read(path)
    at = positions(header, HEADINGS)
    if missing := [repr(heading(HEADINGS, column)) for column in NEEDED if column not in at]:
        raise wrong("columns", path=path, names=", ".join(missing))
    where = source(into or _named(path, lines, at))
    if where.kind == "production":
        raise wrong("production")
    with snapshot(where) as connection:
        known = {row["question_id"]: row for row in read_questions(connection, where, all_rows=True)}
        corpus = read_corpus(connection, where, vectors=False)
    problems: list[str] = []
    verdicts = _verdicts(lines, at, known, can_be_named(corpus), problems)
    if problems:
        raise rejected(path, problems)
    n_rejected = apply(where, verdicts, name)
    with snapshot(where) as connection:
        questions = read_questions(connection, where)
    now, before = labels_of(questions), labels_of([known[row["question_id"]] for row in questions])
    filled = [set(verdict) & set(VERDICTS) for verdict in verdicts.values()]
    counts = Counter(column for of in filled for column in of)
    return {
        "source": where.name,
        "annotator": name,
        "rows": len(lines),
        "labelled": len(verdicts),
        "half_filled": sum(not {*YES_NO, "relevant"} <= of for of in filled),
        "empty": len(lines) - len(verdicts),
        "rejected": n_rejected,
        "question_ok": counts["question_ok"],
        "answer_ok": counts["answer_ok"],
        "show": counts["show"],
        "relevant": counts["relevant"],
        "nuggets": counts["nuggets"],
        "notes": counts["notes"],
        "unit": now.unit,
        "unit_before": before.unit,
        "n_labelled": now.labelled,
        "n_chunks": now.chunks,
    }


def _cases_of(evaluations: Sequence[str], source_name: str) -> dict[str, list[tuple[str, Case]]]:
    """Question -> its rows in the evaluations, with their ids."""
    found: dict[str, list[tuple[str, Case]]] = defaultdict(list)
    for name in evaluations:
        row = journal.find(database(), name)
        if row["source"] != source_name:
            raise wrong("other source", name=name, theirs=row["source"], ours=source_name)
        if row["parquet"] is None:
            raise wrong("no file", name=name, state=row["state"])
        for case in result_files.read(row["parquet"]).to_pylist():
            if case["question_id"] is not None:
                found[case["question_id"]].append((row["id"], case))
    return found


def _line(
    where: Source,
    row: Row,
    cases: Sequence[tuple[str, Case]],
    worth: Mapping[str, float],
    retrieved: str,
    language: str,
) -> list[str]:
    answers = [(name, case["answer"]) for name, case in cases if case.get("answer")]
    answers = answers or ([(LOG, row["answer"])] if row["answer"] else [])
    reasons = texts("annotation.reasons", language)
    shown = {
        "question_id": row["question_id"],
        "source": where.name,
        "why": ", ".join(f"{reasons[name]} {value:g}" for name, value in worth.items()),
        "question": row["question"],
        "answer": answers[0][1] if answers else "",
        "answer_of": answers[0][0] if answers else "",
        "other_answers": "\n\n".join(f"{name}: {answer}" for name, answer in answers[1:]),
        "reference": reference_of(row) or "",
        "retrieved": retrieved,
        "nuggets": as_text(nuggets_of(row)),
    }
    if has_pseudonyms(where.name, unset=True):
        key = own_key()
        texts_of_people = ("question", "answer", "other_answers", "reference", "nuggets")
        shown |= {name: mask(shown[name], key, language) for name in texts_of_people}
    return [shown.get(name, "") for name in COLUMNS]


def _named(path: Path, lines: Sequence[Line], at: Mapping[str, int]) -> str:
    names = sorted({cell_of(cells, at, "source").text for _, cells in lines} - {""})
    if len(names) != 1:
        raise wrong("sources", path=path, names=", ".join(names) or "—")
    return names[0]


def _verdicts(
    lines: Sequence[Line],
    at: Mapping[str, int],
    known: Mapping[str, Row],
    corpus: Known,
    problems: list[str],
) -> dict[str, Review]:
    """The verdicts by question, without rows in which nothing is filled; what is wrong goes into `problems`."""
    found: dict[str, Review] = {}
    rows: dict[str, int] = {}
    for number, cells in lines:
        verdict = {}
        question = cell_of(cells, at, "question_id")
        for name in VERDICTS:
            try:
                verdict[name] = _read(name, cell_of(cells, at, name), corpus)
            except ValueError as error:
                problems.append(f"{said('row', number=number)}, {heading(HEADINGS, name)}: {error}")
        verdict = {name: value for name, value in verdict.items() if value is not None}
        if question.text in known and "nuggets" in verdict:
            verdict |= _edited(verdict.pop("nuggets"), known[question.text])
        if question.text not in known:
            problems.append(f"{said('row', number=number)}: {_no_question(question)}")
        elif verdict and question.text in found:
            twice = said("twice", given=question.text, other=rows[question.text])
            problems.append(f"{said('row', number=number)}: {twice}")
        elif verdict:
            about = {"answer_of": cell_of(cells, at, "answer_of").text} if "answer_ok" in verdict else {}
            found[question.text] = verdict | about
            rows[question.text] = number
    return found


def _edited(said: str, row: Row) -> dict[str, str]:
    """The nuggets, where they are not as they were; a file may show pseudonyms, which are not what is meant."""
    before = as_text(nuggets_of(row))
    shown = (before, row["question"], row["answer"], reference_of(row))
    meant = as_text(from_text(restored(said, filter(None, shown), own_key())))
    return {} if meant == as_text(from_text(before)) else {"nuggets": meant}


def _no_question(cell: Cell) -> str:
    if cell.is_date:
        return said("date for id", given=cell.text)
    return said("question", given=cell.text) if cell.text else said("no id")


def _read(name: str, cell: Cell, corpus: Known) -> Any:
    if name in YES_NO:
        return yes_no(cell)
    if name == "notes":
        return cell.text.replace("\0", "") or None
    if cell.is_date:
        raise ValueError(said("date for text" if name == "nuggets" else "date for ids", given=cell.text))
    if not cell.text:
        return None
    if name == "nuggets":
        return "" if cell.text.strip(" .").casefold() in NONE else as_text(from_text(cell.text.replace("\0", "")))
    none = cell.text not in corpus.names and cell.text.strip(" .").casefold() in NONE
    return named("" if none else cell.text, corpus)
