"""Label audit: defects of a source's questions and labels, counted, with examples."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus, QuestionRow, read_corpus, read_questions
from yarus.db.sources import open_snapshot
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import BAD, GOOD, parse_grades
from yarus.tasks.cases.outcomes import reference_answer
from yarus.tasks.cases.privacy.masking import detect_pii, load_own_key, make_pseudonym, mask
from yarus.tasks.cases.privacy.pseudonyms import should_mask
from yarus.tasks.cases.text import normalise_question, word_stems
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.dataset_schema import DefectFinding, DefectLocation, DuplicateFinding, LabelAudit
from yarus.tasks.dataset.duplicates import duplicate_representatives, find_near_duplicates
from yarus.tasks.evaluation import result_files
from yarus.tasks.models.prompts import read_prompts

Rankings = Mapping[str, Mapping[str, tuple[list[str], list[str]]]]
"""Evaluation -> question -> (relevant, retrieved), for questions that have both."""
RANKING_DEPTH = 10
MAX_KNOWN_SHARE = 1 / 3
"""A question is off topic if at most this share of its words occurs in the corpus."""
MIN_QUESTION_CHARS, MIN_ANSWER_CHARS = 15, 20
"""Minimum length of normalised texts; shorter ones are not searched for in other texts."""


def find_stale_labels(questions: Sequence[QuestionRow], corpus: Corpus) -> list[DefectLocation]:
    """Return labels that name a chunk or page that is not in the corpus."""
    pages, chunks = set(map(canonical_url, corpus.urls)), set(corpus.ids)
    defects = []
    for row in questions:
        page = canonical_url(row["confluence_url"])
        missing = [("confluence_url", row["confluence_url"])] if page is not None and page not in pages else []
        urls = parse_grades(row, "relevant_urls")
        missing += [("relevant_urls", url) for url in urls if canonical_url(url) not in pages]
        missing += [
            ("relevant_chunk_ids", chunk) for chunk in parse_grades(row, "relevant_chunk_ids") if chunk not in chunks
        ]
        defects += [_locate(row, column=column, label=label) for column, label in missing]
    return defects


def find_empty_questions(questions: Sequence[QuestionRow], keys: Sequence[str]) -> list[DefectLocation]:
    """Return questions without a letter or digit."""
    return [_locate(row) for row, key in zip(questions, keys, strict=True) if not key]


def find_duplicate_questions(questions: Sequence[QuestionRow], keys: Sequence[str]) -> list[DefectLocation]:
    """Return questions that differ from an earlier one only in case, punctuation or white space, with the first."""
    return [
        _locate(row, other_question_id=rows[0]["question_id"])
        for rows in _group_equal(questions, keys).values()
        for row in rows[1:]
    ]


def find_similar_questions(questions: Sequence[QuestionRow], keys: Sequence[str]) -> list[DefectLocation]:
    """Return near-duplicates of earlier questions, once each, with the most similar question."""
    best: dict[int, DefectLocation] = {}
    for earlier, later, score in find_near_duplicates(keys):
        row, first = questions[later], questions[earlier]
        best.setdefault(
            later,
            _locate(
                row,
                other_question_id=first["question_id"],
                similarity=round(score, 3),
                other_question=first["question"],
            ),
        )
    return list(best.values())


def find_contradictions(questions: Sequence[QuestionRow], keys: Sequence[str]) -> list[DefectLocation]:
    """Return equal questions with contradictory labels, and questions whose own labels contradict each other."""
    defects = []
    for row in questions:
        is_labelled = bool(parse_grades(row, "relevant_chunk_ids") or parse_grades(row, "relevant_urls"))
        if row.get("answerable") is False and (is_labelled or row.get("ground_truth_answer")):
            defects.append(_locate(row, label_conflict="answerable is no, yet it is labelled"))
    for rows in _group_equal(questions, keys).values():
        defects += [
            _locate(
                rows[-1], label_conflict=conflict, conflicting_question_ids=[row["question_id"] for row in rows[:-1]]
            )
            for conflict in _describe_contradictions(rows)
        ]
    return defects


def find_leaked_answers(
    questions: Sequence[QuestionRow], keys: Sequence[str], prompts: Mapping[str, str]
) -> list[DefectLocation]:
    """Return questions whose reference answer is available without retrieval: in the cache, a prompt, or the question.

    Args:
        questions: n rows, earlier ones first.
        keys: their normalised texts.
        prompts: name -> text of the prompts in use.
    """
    normalised = {name: normalise_question(text) for name, text in prompts.items()}
    cached: dict[tuple[str, str], str] = {}
    defects = []
    for row, key in zip(questions, keys, strict=True):
        reference = normalise_question(reference_answer(row) or "")
        stored_answer = normalise_question(row["answer"] or "")
        if reference and (key, reference) in cached:
            defects.append(_locate(row, found_in="cache", other_question_id=cached[key, reference]))
        elif len(reference) >= MIN_ANSWER_CHARS and reference in key:
            defects.append(_locate(row, found_in="question"))
        else:
            defects += [
                _locate(row, found_in=f"prompt {name}") for name in _prompts_with_text(key, reference, normalised)
            ]
        if row["score"] == GOOD and key and stored_answer:
            cached.setdefault((key, stored_answer), row["question_id"])
    return defects


def find_disputed_labels(questions: Sequence[QuestionRow], rankings: Rankings) -> list[DefectLocation]:
    """Return questions whose relevant documents are not in the top ten of any evaluation."""
    defects = []
    for row in questions:
        pairs = [evaluation[row["question_id"]] for evaluation in rankings.values() if row["question_id"] in evaluation]
        if pairs and not any(set(relevant) & set(retrieved[:RANKING_DEPTH]) for relevant, retrieved in pairs):
            defects.append(_locate(row, label=pairs[0][0][:5], retrieved=pairs[0][1][:3], evaluations=len(pairs)))
    return defects


def find_off_topic_questions(
    questions: Sequence[QuestionRow], keys: Sequence[str], corpus: Corpus
) -> list[DefectLocation]:
    """Return questions with few words from the corpus; skip questions without content words."""
    corpus_words = set[str]().union(*map(word_stems, corpus.texts))
    stems = [word_stems(key) for key in keys]
    shares = [len(words & corpus_words) / len(words) if words else 1.0 for words in stems]
    return [
        _locate(row, known_word_share=round(share, 2))
        for row, share in zip(questions, shares, strict=True)
        if share <= MAX_KNOWN_SHARE
    ]


def find_personal_data(questions: Sequence[QuestionRow], corpus: Corpus) -> list[DefectLocation]:
    """Return phones, e-mails, names and document numbers of questions and answers that the corpus does not contain."""
    public_texts = {_strip_spaces(match.text) for text in corpus.texts for match in detect_pii(text)}
    return [
        _locate(row, column=column, kind=match.kind, text=match.text)
        for row in questions
        for column in ("question", "answer")
        for match in detect_pii(row[column] or "")
        if _strip_spaces(match.text) not in public_texts
    ]


def _locate(row: QuestionRow, **more: Any) -> DefectLocation:
    return cast(DefectLocation, {"question_id": row["question_id"], "question": row["question"] or ""} | more)


def _group_equal(questions: Sequence[QuestionRow], keys: Sequence[str]) -> dict[str, list[QuestionRow]]:
    """Return groups of at least two equal questions."""
    groups: dict[str, list[QuestionRow]] = defaultdict(list)
    for row, key in zip(questions, keys, strict=True):
        if key:
            groups[key].append(row)
    return {key: rows for key, rows in groups.items() if len(rows) > 1}


def _describe_contradictions(rows: Sequence[QuestionRow]) -> Iterable[str]:
    scores = {row["score"] for row in rows}
    if {GOOD, BAD} <= scores:
        yield "score 5 and 1"
    pages = {canonical_url(row["confluence_url"]) for row in rows if row["score"] == GOOD} - {None}
    if len(pages) > 1:
        yield "score 5 for different pages"
    for name in ("ground_truth_show", "answerable"):
        if {True, False} <= {row.get(name) for row in rows}:
            yield f"{name} yes and no"
    relevant = [chunk_ids for row in rows if (chunk_ids := parse_grades(row, "relevant_chunk_ids").keys())]
    if any(relevant[0].isdisjoint(labels) for labels in relevant[1:]):
        yield "different relevant chunks"


def _prompts_with_text(key: str, reference: str, prompts: Mapping[str, str]) -> list[str]:
    """Return the names of the prompts that contain the question or its reference."""
    texts = [text for text, limit in ((key, MIN_QUESTION_CHARS), (reference, MIN_ANSWER_CHARS)) if len(text) >= limit]
    return [name for name, prompt in prompts.items() if any(text in prompt for text in texts)]


def _strip_spaces(text: str) -> str:
    return "".join(text.casefold().split())


NO_RANKINGS = "name evaluations of tier1, tier3 or real_users by --evaluation: their rankings dispute labels"
KINDS: tuple[str, ...] = ("stale", "duplicates", "near_duplicates", "contradictions", "leaked")
KINDS += ("disputed", "off_topic", "empty", "personal")
LATEST = datetime.max.replace(tzinfo=UTC)


def audit_labels(source_name: str, evaluations: Sequence[str] = (), *, examples: int = 10) -> LabelAudit:
    """Audit all questions of a source, including rejected ones and those without a text.

    Args:
        source_name: name of a loaded source, or `production`.
        evaluations: evaluations whose rankings may dispute labels.
        examples: maximum number of examples per kind; pseudonyms replace personal data in their texts.

    Raises:
        InputError: the source or an evaluation does not exist, or an evaluation has another source or no rankings.
    """
    data_source = open_source(source_name)
    rankings = {name: _load_rankings(name, data_source.name) for name in evaluations}
    with open_snapshot(data_source) as connection:
        questions = read_questions(connection, data_source, all_rows=True)
        corpus = read_corpus(connection, data_source, vectors=False)
    in_use = read_prompts(get_settings().model_copy(update={"language": data_source.language}))
    defects = find_defects(questions, corpus, rankings, {name: prompt.template for name, prompt in in_use.items()})
    pseudonym_key = load_own_key() if should_mask(data_source.name, unset=True) else None
    findings = {kind: _finding(defects[kind], examples, pseudonym_key, data_source.language) for kind in KINDS}
    if not rankings:
        findings["disputed"]["reason"] = NO_RANKINGS
    kinds = dict(Counter(location["kind"] for location in defects["personal"] or ()))
    document = {
        "source": data_source.name,
        "n_questions": len(questions),
        "n_chunks": len(corpus.ids),
        "evaluations": list(rankings),
        **findings,
        "personal": {**findings["personal"], "kinds": kinds},
        "duplicate_chunks": _summarize_duplicates(corpus, examples),
    }
    return cast(LabelAudit, document)


def find_defects(
    questions: Sequence[QuestionRow], corpus: Corpus, rankings: Rankings, wording: Mapping[str, str]
) -> dict[str, list[DefectLocation] | None]:
    """Return all defect locations by kind; None if a kind cannot be checked.

    Args:
        questions: rows with their annotations, in any order.
        corpus: the chunks of the source.
        rankings: rankings by evaluation.
        wording: name -> text of the prompts in use.
    """
    questions = sorted(questions, key=_time_key)
    keys = [normalise_question(row["question"] or "") for row in questions]
    return {
        "stale": find_stale_labels(questions, corpus),
        "duplicates": find_duplicate_questions(questions, keys),
        "near_duplicates": find_similar_questions(questions, keys),
        "contradictions": find_contradictions(questions, keys),
        "leaked": find_leaked_answers(questions, keys, wording),
        "disputed": find_disputed_labels(questions, rankings) if rankings else None,
        "off_topic": find_off_topic_questions(questions, keys, corpus),
        "empty": find_empty_questions(questions, keys),
        "personal": find_personal_data(questions, corpus),
    }


def _summarize_duplicates(corpus: Corpus, examples: int) -> DuplicateFinding:
    groups: dict[str, list[str]] = {}
    for chunk, representative in duplicate_representatives(corpus, "chunk").items():
        groups.setdefault(representative, []).append(chunk)
    pages = duplicate_representatives(corpus, "page")
    largest = sorted(groups.values(), key=len, reverse=True)
    count = sum(len(group) - 1 for group in largest)
    return {"count": count, "pages": len(pages) - len({*pages.values()}), "examples": largest[:examples]}


def _finding(defects: list[DefectLocation] | None, examples: int, key: bytes | None, language: str) -> DefectFinding:
    if defects is None:
        return {"count": None, "examples": []}
    chosen = defects[:examples]
    return {"count": len(defects), "examples": [_mask(defect, key, language) for defect in chosen] if key else chosen}


def _mask(location: DefectLocation, key: bytes, language: str) -> DefectLocation:
    """Return the location with pseudonyms in all of its texts; ids and labels stay.

    `text` is not searched again, because many numbers and names are not recognised without their context.
    """
    masked: DefectLocation = {**location, "question": mask(location["question"], key, language)}
    if "other_question" in location:
        masked["other_question"] = mask(location["other_question"], key, language)
    if "text" in location:
        masked["text"] = make_pseudonym(location["kind"], location["text"], key, language)
    return masked


def _time_key(row: QuestionRow) -> tuple[datetime, int, str]:
    """Return a sort key: earlier questions first, those without a time last, by id."""
    moment = row["created_at"] or LATEST
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC), len(row["question_id"]), row["question_id"])


def _load_rankings(evaluation: str, source_name: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return question -> (relevant, retrieved) of an evaluation."""
    row = journal.find_evaluation(database(), evaluation)
    if row["source"] != source_name:
        raise InputError(
            "--evaluation {evaluation}: its source is {source!r}, not {source_name!r}",
            evaluation=evaluation,
            source=row["source"],
            source_name=source_name,
        )
    if row["parquet"] is None:
        raise InputError(
            "--evaluation {evaluation}: it is {state} and has no file", evaluation=evaluation, state=row["state"]
        )
    table = result_files.read_results(row["parquet"])
    if not {"relevant", "retrieved"} <= set(table.column_names):
        raise InputError(
            "--evaluation {evaluation}: {tier} has no rankings; name one of tier1 or tier3",
            evaluation=evaluation,
            tier=row["tier"],
        )
    cases = table.select(["question_id", "relevant", "retrieved"]).to_pylist()
    return {case["question_id"]: (case["relevant"], case["retrieved"]) for case in cases
            if case["relevant"] and case["retrieved"] is not None}  # fmt: skip
