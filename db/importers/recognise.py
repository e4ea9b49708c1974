"""Detect which column of a foreign table is which of ours: by known shapes, by names in Russian and English, by values.

Nothing is guessed: if several columns could be one of ours, none is taken, and all are reported.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from yarus.db.importers.cells import LIST_COLUMNS
from yarus.db.importers.column_parsers import DIGITS, BadValue, parse_value
from yarus.db.importers.shapes import PASSAGE_KEYS, Shape, detect_shape
from yarus.db.importers.traces.extraction import extract_question
from yarus.db.importers.votes import are_votes, is_negative_vote_name, is_user_vote_name, is_vote_or_number
from yarus.db.messages import Words

RowKind = Literal["questions", "chunks"]
N_SAMPLE_ROWS = 200
"""First rows that are examined."""
MAX_PAGE_NAME = 120
"""Maximum length of a page name."""

SHARED_NAMES = {
    "id": "id|uuid|guid|ид|идентификатор|номер|код|n|no|pk",
    "confluence_url": "confluence_url|page_url|url|urls|link|links|href|page|pages|source_url|document_url|doc_url|"
    "source|sources|path|file_name|filename|file_path|cited_articles|cited_pages|citations|fuentes|ссылка|ссылки|адрес|страница|страницы|источник|"
    "источники|ссылка_на_страницу|адрес_страницы|url_страницы|показанная_страница|показанные_страницы",
}
COLUMN_ALIASES: dict[RowKind, dict[str, str]] = {
    "questions": SHARED_NAMES
    | {
        "id": f"{SHARED_NAMES['id']}|question_id|qa_id|query_id|qid|case_id|test_id|item_id|example_id|message_id|"
        "msg_id|request_id|log_id|id_вопроса|номер_вопроса",
        "question": "question|questions|query|queries|q|user_question|user_query|user_message|user_input|request|input|"
        "inputs|prompt|вопрос|вопросы|запрос|текст_вопроса|вопрос_пользователя|текст_запроса|обращение|"
        "сообщение_пользователя|question_text|query_text|instruction",
        "answer": "answer|answers|response|responses|reply|bot_answer|bot_response|output|outputs|completion|"
        "answer_text|actual_output|actual_answer|model_answer|model_response|llm_answer|generated_answer|predicted_answer|"
        "predicted_answers|prediction|pred|hypothesis|generated_text|"
        "generated_texts|system_answer|фактический_результат|ответ|ответы|ответ_бота|ответ_модели|текст_ответа|ответ_системы",
        "score": "score|rating|mark|stars|оценка|рейтинг|балл",
        "user_id": "user_id|user|userid|client_id|client|author|chat_id|telegram_id|vk_id|пользователь|"
        "id_пользователя|ид_пользователя|клиент|студент|автор",
        "created_at": "created_at|created|timestamp|date|datetime|time|ts|asked_at|created_on|дата|время|дата_время|"
        "дата_и_время|дата_вопроса|время_вопроса|создан|создано|дата_создания",
        "ground_truth_answer": "ground_truth_answer|ground_truth|ground_truths|ground_truth_answers|gt|gt_answer|"
        "reference|references|reference_answer|reference_answers|expected|expected_answer|expected_output|"
        "expected_response|expected_reply|gold|gold_answer|golden_answer|ideal|ideal_answer|correct_answer|true_answer|"
        "target|targets|target_answer|ожидаемый_результат|эталон|эталонный_ответ|правильный_ответ|верный_ответ|ожидаемый_ответ",
        "relevant_urls": "relevant_urls|relevant_url|relevant_pages|relevant_page|relevant_docs|relevant_documents|"
        "relevant_doc|relevant_sources|relevant_files|expected_url|expected_urls|expected_page|expected_pages|"
        "expected_source|expected_sources|expected_doc|expected_docs|expected_document|expected_documents|"
        "expected_articles|expected_article|expected_file|expected_files|gold_url|gold_urls|gold_doc|gold_docs|"
        "gold_documents|gold_source|gold_sources|source_docs|source_doc|source_document|source_file|source_files|"
        "evidence_any|evidence|doc_name|ground_truth_docs|reference_urls|reference_docs|правильная_страница|правильные_страницы|правильная_ссылка|"
        "правильные_ссылки|правильный_источник|эталонная_ссылка|эталонные_страницы",
        "relevant_chunk_ids": "relevant_chunk_ids|relevant_chunks|relevant_passages|relevant_contexts|relevant_ids|"
        "relevant_doc_ids|gold_chunks|gold_chunk_ids|gold_doc_ids|gold_ids|gold_contexts|gold_context|gold_passages|"
        "ground_truth_context|ground_truth_contexts|"
        "expected_chunks|expected_chunk_ids|expected_doc_id|expected_doc_ids|expected_source_ids|expected_ids|"
        "expected_contexts|expected_context|reference_contexts|reference_context|reference_context_ids|evidence_ids|"
        "ideal_context|positive_passages|эталонный_контекст",
        "ground_truth_show": "ground_truth_show|should_show|показать|надо_показать",
        "answerable": "answerable|is_answerable|has_answer|unanswerable|is_impossible|expect_refusal|should_refuse|"
        "should_answer|in_scope|есть_ответ",
        "nuggets": "nuggets",
        "cluster": "cluster|topic|category|тема|категория|рубрика|раздел",
        "dialog_id": "dialog_id|session_id|conversation_id|conversation_group_id|thread_id|диалог|сессия|id_диалога|"
        "id_сессии",
        "turn": "turn|turn_number|turn_id|номер_реплики",
        "origin": "origin",
        "contexts": "contexts|context|retrieved_contexts|retrieved_context|retrieval_context|retrieved_chunks|"
        "retrieved_passages|retrieved_documents|retrieved_docs|retrieved_contents|source_documents|documents|passages|контекст|контексты",
        "history": "history|chat_history",
        "latency_ms": "latency_ms|response_time_ms|duration_ms|время_ответа_мс",
        "first_token_ms": "first_token_ms",
        "tokens_in": "tokens_in|prompt_tokens|input_tokens",
        "tokens_out": "tokens_out|completion_tokens|output_tokens",
        "cost_usd": "cost_usd",
        "error": "error|error_message",
        "trace_id": "trace_id",
        "span_id": "span_id",
        "embedding": "embedding|vector|эмбеддинг|вектор",
    },
    "chunks": SHARED_NAMES
    | {
        "id": f"{SHARED_NAMES['id']}|chunk_id|page_id|doc_id|docid|document_id|passage_id|id_страницы|id_фрагмента",
        "text": "text|content|contents|body|chunk|passage|page_content|chunk_text|page_text|текст|содержание|"
        "содержимое|фрагмент|статья|текст_страницы|текст_фрагмента|тело",
        "embedding": "embedding|vector|эмбеддинг|вектор",
        "page_title": "page_title|title|заголовок|название",
    },
}
"""Our column -> its names in other tables: words joined by _, in small letters, е for ё. `votes` knows more names of
scores."""
QUESTION_ALIASES = (
    "questions", "query", "queries", "user_question", "user_query", "user_message", "вопрос", "вопросы", "запрос",
)  # fmt: skip
"""Names of a question that may occur together with our own name and mean another text."""
REFERENCE_PARENTS = ("expected", "expectations", "reference", "gold", "ground_truth", "reference_outputs")
"""Objects whose answer is the reference, and whose pages are the relevant ones."""
JUDGE_WORDS = ("reason", "judge", "critique", "explanation", "эксперт", "комментарий_эксперта")
"""Words in names of other columns that make a mark a judge's and not a user's, unless the table is a log."""
METRIC_WORDS = ("faithfulness", "relevancy", "answer_relevance", "correctness", "context_precision", "context_recall")
"""Words in names of other columns that make a mark a judge's even in a log."""
INVERTED_NAMES = ("unanswerable", "is_impossible", "expect_refusal", "should_refuse")
"""Names under which a yes means that there is no answer."""
MISSING_TEXTS = frozenset(("nan", "NaN", "null", "NULL", "NaT", "<NA>", "#N/A", "\\N"))
"""Texts that programs write for a missing value, and no person writes as an answer."""
MAP_ALIASES = {"page_url": "confluence_url"}
"""Other names of our own columns in `--map`."""
REQUIRED_COLUMNS: dict[RowKind, str] = {"questions": "question", "chunks": "text"}
CONTENT_COLUMNS = ("confluence_url", "created_at")
"""Columns that can be detected by their values alone."""
AMBIGUOUS_ANSWERS = ("answer", "answers", "a", "ответ", "ответы")
"""Names of an answer that may be the bot's or the reference."""
LOG_COLUMNS = (
    "user_id", "created_at", "score", "dialog_id", "turn", "contexts", "latency_ms", "tokens_out", "error", "trace_id",
)  # fmt: skip
"""Columns that only logs have besides answers, never test sets."""
OTHER_LOG_COLUMNS = ("latency", "model", "provider", "модель")
"""Other columns that only logs have, which are not ours."""


@dataclass
class DetectedColumns:
    """The detected columns of a table."""

    kind: RowKind | None
    """None if it could be either, or neither."""
    mapping: dict[str, str] = field(default_factory=dict)
    """Our column -> its name in the file."""
    doubtful: dict[str, list[str]] = field(default_factory=dict)
    """Our column -> several candidates, or one whose values do not fit."""
    unused: list[str] = field(default_factory=list)
    shape: Shape | None = None
    """The shape of the table, if known."""
    notes: list[str] = field(default_factory=list)
    """Decisions that depend on other columns, and how to change them."""


def detect_columns(
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    kind: RowKind | None = None,
    mapped: Mapping[str, str] | None = None,
) -> DetectedColumns:
    """Detect the columns of a table.

    Args:
        names: of its columns; nested names have dots.
        rows: the first rows, by these names.
        kind: of the rows, if known.
        mapped: our column -> its name in the file, if known.
    """
    mapped = mapped or {}
    filled = {name: values for name in names if (values := list(iter_values(rows, name)))}
    shape = detect_shape({normalize_name(name) for name in names}, {normalize_name(name) for name in filled})
    if shape is not None and kind in (None, shape.kind):
        proposal = DetectedColumns(shape.kind, _map_shape_columns(shape, names, filled, mapped), shape=shape)
    elif kind := kind or _detect_kind(names):
        proposal = DetectedColumns(kind, dict(mapped))
    else:
        return DetectedColumns(None, unused=list(names))
    _propose_by_names(proposal, names, filled, mapped)
    _note_unused(proposal, names)
    question = proposal.mapping.get("question", "")
    if "history" not in {*proposal.mapping, *proposal.doubtful} and _has_history(filled.get(question, ())):
        proposal.mapping["history"] = question
    return proposal


def _has_history(questions: Sequence[Any]) -> bool:
    """Return whether questions are the last of several messages."""
    chats = [value for value in questions if not isinstance(value, str) or value.lstrip().startswith(("[", "{"))]
    return any(extract_question(chat)[1] for chat in chats)


def _map_shape_columns(
    shape: Shape, names: Sequence[str], filled: Mapping[str, list[Any]], mapped: Mapping[str, str]
) -> dict[str, str]:
    """Return the columns of a shape, and those that are already mapped."""
    by_name = {normalize_name(name): name for name in reversed(names)}
    columns = dict(mapped)
    for target, aliases in shape.columns.items():
        candidates = [by_name[name] for name in aliases if name in by_name and by_name[name] not in mapped.values()]
        with_values = [name for name in candidates if name in filled] or candidates[:1]
        if with_values and target not in mapped:
            columns[target] = with_values[0]
    return columns


def _propose_by_names(
    proposal: DetectedColumns, names: Sequence[str], filled: Mapping[str, list[Any]], mapped: Mapping[str, str]
) -> None:
    """Detect by names and values the columns that are neither mapped nor in a shape."""
    taken = tuple(proposal.mapping.values())
    free = [name for name in names if not any(column == name or column.startswith(f"{name}.") for column in taken)]
    for target, aliases in COLUMN_ALIASES[proposal.kind or "questions"].items():
        if target in proposal.mapping:
            continue
        taken_prefixes = tuple(f"{column}." for column in taken) if target in ("answer", "ground_truth_answer") else ()
        named_columns = _find_by_name(target, aliases, [name for name in free if not name.startswith(taken_prefixes)])
        if target == "score":
            named_columns = _prefer_votes(named_columns, filled, proposal)
        candidates = _filter_fitting(target, named_columns, filled)
        if target == "question":
            candidates += _find_rivals(candidates, free, filled)
        if len(candidates) == 1 and not (len(named_columns) > 1 and any(map(is_negative_vote_name, named_columns))):
            proposal.mapping[target] = candidates[0]
        elif named_columns:
            proposal.doubtful[target] = candidates if len(candidates) > 1 else named_columns
    if proposal.kind == "questions":
        _settle_ambiguous(proposal, filled, mapped)
        if "answer" not in proposal.mapping and "ground_truth_answer" in proposal.mapping:
            return
    _propose_by_content(proposal, names, filled)


def _propose_by_content(proposal: DetectedColumns, names: Sequence[str], filled: Mapping[str, list[Any]]) -> None:
    taken = {*proposal.mapping.values(), *(name for columns in proposal.doubtful.values() for name in columns)}
    for target in CONTENT_COLUMNS:
        candidates = [name for name in names if name not in taken and _has_content_of(target, filled.get(name, []))]
        decided = {*proposal.mapping, *proposal.doubtful}
        if target in COLUMN_ALIASES[proposal.kind or "questions"] and target not in decided and candidates:
            if len(candidates) == 1:
                proposal.mapping[target] = candidates[0]
            else:
                proposal.doubtful[target] = candidates
            taken.update(candidates)


def _prefer_votes(names: Sequence[str], filled: Mapping[str, list[Any]], proposal: DetectedColumns) -> list[str]:
    """Return the columns whose names mean votes by users, if there are any; else all."""
    votes = [name for name in names if is_user_vote_name(_own_name(name)) and name in filled]
    votes = [name for name in votes if _share_of(filled[name], is_vote_or_number) > 0.5]
    others = [name for name in names if name not in votes and name in filled and not is_user_vote_name(_own_name(name))]
    if not votes:
        return list(names)
    for other in others:
        proposal.notes.append(
            Words(
                "{other!r} is not used as score, for users gave {theirs!r} by its name; if it is theirs: --map {map}",
                other=other, theirs=votes[0], map=quote_for_shell(f"score={other}"),
            )
        )  # fmt: skip
    return votes


def _find_rivals(questions: Sequence[str], names: Sequence[str], filled: Mapping[str, list[Any]]) -> list[str]:
    """Return columns with other questions than the column with our own name."""
    if list(questions) != ["question"]:
        return []
    question_texts = set(map(str, filled.get("question", ())))
    others = [
        name for name in names if name != "question" and normalize_name(name) in QUESTION_ALIASES and name in filled
    ]
    return [
        name
        for name in others
        if _share_of(filled[name], lambda text: isinstance(text, str) and text not in question_texts) > 0.5
    ]


def _filter_fitting(target: str, candidates: Sequence[str], filled: Mapping[str, list[Any]]) -> list[str]:
    """Return the candidates whose values fit our column; of several ids the first, of others those with values."""
    our_names = {target, *(alias for alias, column in MAP_ALIASES.items() if column == target)}
    fitting = [
        name
        for name in candidates
        if accepts_values(target, filled.get(name, []), exact=normalize_name(name) in our_names, name=name)
    ]
    if target == "id":
        return fitting[:1]
    return [name for name in fitting if name in filled] or fitting


def _find_by_name(target: str, aliases: str, names: Sequence[str]) -> list[str]:
    """Return the columns with a name of ours: the own name, an alias, or an alias as the last part of a dotted name."""
    if target in names and target != "score":
        return [target]
    spellings = aliases.split("|")
    if target == "answer" and "q" in map(normalize_name, names):
        spellings.append("a")
    matching = [name for alias in spellings for name in names if normalize_name(name) == alias]
    if target == "score":
        matching += [name for name in names if is_user_vote_name(name)]
    matching = [name for name in matching if not any(other_name.startswith(f"{name}.") for other_name in matching)]
    if matching or target == "id":
        return matching
    return [name for name in names if "." in name and _matches_last_part(target, name, spellings)]


def _matches_last_part(target: str, name: str, spellings: Sequence[str]) -> bool:
    """Return whether the last part of a dotted name is an alias; names within a reference belong to the reference."""
    parent, _, last = name.rpartition(".")
    if normalize_name(parent.rpartition(".")[2]) in REFERENCE_PARENTS:
        column = {"ground_truth_answer": "answer", "relevant_urls": "confluence_url"}.get(target)
        return column is not None and normalize_name(last) in COLUMN_ALIASES["questions"][column].split("|")
    is_match = normalize_name(last) in spellings or (target == "score" and is_user_vote_name(last))
    return is_match and normalize_name(name) not in _known_names()


def _settle_ambiguous(proposal: DetectedColumns, filled: Mapping[str, list[Any]], mapped: Mapping[str, str]) -> None:
    """Decide ambiguous names by the rest of the table.

    `answer` without columns of a log is the reference; contexts without an answer are the relevant passages; pages
    beside a reference and without an answer are the relevant ones.
    """
    mapping, notes = proposal.mapping, proposal.notes
    _settle_answers(proposal, filled, mapped)
    _settle_score(proposal, filled)
    if {"answer", "contexts", "confluence_url"} & proposal.doubtful.keys():
        return
    has_answer = "answer" in mapping and mapping["answer"] in filled
    contexts = mapping.get("contexts")
    if contexts is not None and "contexts" not in mapped and not has_answer and "history" not in mapping:
        del mapping["contexts"]
        if not {"relevant_chunk_ids"} & {*mapping, *proposal.doubtful} and contexts in filled:
            mapping["relevant_chunk_ids"] = contexts
            notes.append(
                Words(
                    "{theirs!r} is taken as the relevant passages, for there is no answer that was made of them; if it "
                    "is what the bot was given: --map {map}",
                    theirs=contexts, map=quote_for_shell(f"contexts={contexts}"),
                )
            )  # fmt: skip
    page = mapping.get("confluence_url")
    has_no_labels = not {"relevant_urls"} & {*mapping, *proposal.doubtful}
    is_certain = page is None or "confluence_url" in mapped or normalize_name(page) == "confluence_url"
    if page is not None and not is_certain and not has_answer and "ground_truth_answer" in mapping and has_no_labels:
        mapping["relevant_urls"] = mapping.pop("confluence_url")
        notes.append(
            Words(
                "{theirs!r} is taken as the relevant page, for there is no answer that was made of it; if the bot "
                "showed it: --map {map}",
                theirs=page, map=quote_for_shell(f"page_url={page}"),
            )
        )  # fmt: skip


def _settle_answers(proposal: DetectedColumns, filled: Mapping[str, list[Any]], mapped: Mapping[str, str]) -> None:
    """Decide whether a column is the reference or the bot's answer if it may be either."""
    mapping, notes = proposal.mapping, proposal.notes
    if proposal.shape is not None or {"ground_truth_answer"} & {*mapping, *proposal.doubtful}:
        return
    names = proposal.doubtful.get("answer") or ([mapping["answer"]] if "answer" in mapping else [])
    ambiguous = [
        name
        for name in names
        if normalize_name(name.rpartition(".")[2]) in AMBIGUOUS_ANSWERS and name not in mapped.values()
    ]
    if len(ambiguous) != 1:
        return
    others = [
        name
        for name in filled
        if name != ambiguous[0] and "answer" in find_columns(name) and name not in AMBIGUOUS_ANSWERS
    ]
    has_one_other = len(others) == 1 and (others[0] in names or others[0] not in mapping.values())
    if has_one_other or mapped.get("answer") in others:
        proposal.doubtful.pop("answer", None)
        mapping["ground_truth_answer"], mapping["answer"] = ambiguous[0], mapped.get("answer") or others[0]
        notes.append(
            Words(
                "{theirs!r} is taken as the reference, for {other!r} is what the bot said; if it is otherwise: "
                "--map {map}",
                theirs=ambiguous[0], other=mapping["answer"], map=quote_for_shell(f"answer={ambiguous[0]}"),
            )
        )  # fmt: skip
        return
    if "answer" not in mapping:
        return
    log_columns = [name for name in LOG_COLUMNS if name in proposal.doubtful or mapping.get(name) in filled]
    log_columns += [
        name for name in filled if normalize_name(name) in OTHER_LOG_COLUMNS or is_user_vote_name(_own_name(name))
    ]
    label_columns = {"relevant_urls", "relevant_chunk_ids", "answerable"} & mapping.keys()
    if not log_columns or (log_columns == ["contexts"] and label_columns):
        mapping["ground_truth_answer"] = mapping.pop("answer")
        notes.append(
            Words(
                "{theirs!r} is taken as the reference, for nothing else of a log is there (user, time, vote, "
                "contexts); if it is what the bot said: --map {map}",
                theirs=ambiguous[0], map=quote_for_shell(f"answer={ambiguous[0]}"),
            )
        )  # fmt: skip
    elif log_columns == ["contexts"]:
        notes.append(
            Words(
                "{theirs!r} is taken as what the bot said, for {contexts!r} is what it was given; if it is the "
                "reference: --map {map}",
                theirs=ambiguous[0], contexts=mapping["contexts"],
                map=quote_for_shell(f"ground_truth_answer={ambiguous[0]}"),
            )
        )  # fmt: skip


def _settle_score(proposal: DetectedColumns, filled: Mapping[str, list[Any]]) -> None:
    """Leave out a mark beside a judge's reasons or metrics, unless its name means that users gave it."""
    mapping = proposal.mapping
    is_log = "user_id" in mapping or "created_at" in mapping
    judge_words = METRIC_WORDS if is_log else METRIC_WORDS + JUDGE_WORDS
    score = mapping.get("score", "")
    other_names = {normalize_name(name) for name in filled if name != score}
    is_explained = not is_log and "feedback" in other_names  # a judge explains its `feedback_score`
    is_vote = is_user_vote_name(_own_name(score)) and not (
        is_explained and normalize_name(_own_name(score)).startswith("feedback")
    )
    is_judged = is_explained or any(word in name for name in other_names for word in judge_words)
    if score and is_judged and not is_vote:
        proposal.doubtful["score"] = [mapping.pop("score")]


def _note_unused(proposal: DetectedColumns, names: Sequence[str]) -> None:
    taken = {*proposal.mapping.values(), *(name for columns in proposal.doubtful.values() for name in columns)}
    parents = {name.partition(".")[0] for name in taken}
    proposal.unused = [name for name in names if name not in taken and not ("." not in name and name in parents)]
    proposal.unused = [name for name in proposal.unused if name.partition(".")[0] not in taken]


def _own_name(name: str) -> str:
    """Return the name of a column within its object, unless the whole name means votes by users."""
    return name if is_user_vote_name(name) else name.rpartition(".")[2]


@cache
def normalize_name(name: str) -> str:
    """Normalise a column name to the form of the lists above."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-zа-я])(?=[A-ZА-Я])", " ", name).casefold().replace("ё", "е"))
    return ("__" if name.startswith("__") else "") + "_".join(words) or ("n" if "№" in name else "")


@cache
def _known_names() -> frozenset[str]:
    names = {alias for kind in COLUMN_ALIASES.values() for aliases in kind.values() for alias in aliases.split("|")}
    return frozenset(
        names | {*PASSAGE_KEYS, "vars", "test_case", "messages", "retrieval_gt", "generation_gt", "expectations"}
    )


def is_known(name: str) -> bool:
    """Return whether a column name is in any list of known names."""
    name = str(name)
    return (
        normalize_name(name) in _known_names()
        or normalize_name(name.rpartition(".")[2]) in _known_names()
        or is_user_vote_name(_own_name(name))
    )


def explain_unused_columns(target: str, candidates: Sequence[str]) -> Words:
    """Return why columns that could be one of ours are not used, and how to use one of them."""
    names, map_first = ", ".join(candidates), quote_for_shell(f"{target}={candidates[0]}")
    if target == "score" and any(map(is_negative_vote_name, candidates)):
        return Words("{names}: votes for and against. Not used; put them in one column: 1, -1, or nothing", names=names)
    if len(candidates) > 1:
        return Words("{ours}: {names}? Not used; choose one: --map {ours}=COLUMN", ours=target, names=names)
    if target == "score":
        return Words(
            "score: {names}. Not used: 5 is good and 1 is bad here. If 1 is good and 0 or -1 is bad: --map {map}. "
            "Convert any other scale to 1 to 5 first",
            names=names, map=map_first,
        )  # fmt: skip
    return Words(
        "{ours}: {names} by its name, but not by its values. Not used; if it is: --map {map}",
        ours=target, names=names, map=map_first,
    )  # fmt: skip


def find_columns(name: str) -> set[str]:
    """Return our columns that have this alias."""
    return {
        target
        for names in COLUMN_ALIASES.values()
        for target, aliases in names.items()
        if normalize_name(name) in aliases.split("|")
    }


def quote_for_shell(text: str) -> str:
    """Quote a word for a shell command if it needs quotes; letters of any alphabet do not."""
    return text if re.fullmatch(r"[\w@%+=:,./№-]+", text) else shlex.quote(text)


def accepts_values(target: str, values: Sequence[Any], *, exact: bool = False, name: str = "") -> bool:
    """Return whether most of these values fit our column; a column without values fits.

    Args:
        target: our column.
        values: of the candidate, without empty ones.
        exact: whether the candidate has our own name, so that half of the values are enough.
        name: of the candidate, which decides whether 0 and 1 are votes.
    """
    enough = 0.5 if exact else 0.8
    if target == "score":  # here 1 is bad and 5 is good: another scale would be inverted
        if not values or are_votes(values, _own_name(name)):
            return bool(values) or exact
        written_marks = {str(value).removesuffix(".0") for value in values}
        shows_scale = written_marks == {"1"} or not written_marks.isdisjoint("2345") if exact else "5" in written_marks
        return shows_scale and _share_of(values, _is_mark) > enough
    if target == "relevant_urls":
        return (
            not values
            or _share_of(values, lambda value: _may_be_page_names(value) or len(str(value)) <= MAX_PAGE_NAME) > enough
        )
    if target == "confluence_url" and not exact:
        texts = [value for value in values if not isinstance(value, int | float)]
        return not values or _share_of(values, lambda value: value in texts and _may_be_page_names(value)) > enough
    if target == "id":
        unique_share = len({*map(str, values)}) / len(values) if values else 0
        return unique_share > 0.5 if exact else unique_share == 1
    if target in LIST_COLUMNS:
        return True  # all values together decide how their items are separated
    if target == "ground_truth_answer":
        return not values or _share_of(values, _is_reference) > enough or exact
    if target in ("question", "answer", "text"):
        return (
            not values
            or _share_of(values, lambda value: not isinstance(value, bytes | bool | int | float)) > enough
            or exact
        )
    return not values or _share_of(values, lambda value: _can_parse(target, value)) > enough


def _is_reference(value: Any) -> bool:
    """Return whether a value may be a reference answer: not bytes, an address or a file name."""
    texts = value if isinstance(value, list) else [value]
    return not isinstance(value, bytes) and not any(
        isinstance(text, str) and re.fullmatch(r"https?://\S+|[\w/.-]+\.(?:md|html?|pdf|docx?|txt)", text.strip())
        for text in texts
    )


def _may_be_page_names(value: Any) -> bool:
    """Return whether a value looks like page names: addresses, files, lists of them, or integers."""
    if isinstance(value, int | list | dict):
        return not isinstance(value, bool)
    text = str(value)
    return "/" in text or "." in text or text.startswith(("[", "{")) or text.isdigit()


def _detect_kind(names: Sequence[str]) -> RowKind | None:
    """Detect the kind of the rows by required names; a log may have a column `text`, too."""
    has_column = {
        target: bool(_find_by_name(target, aliases, names)) for target, aliases in COLUMN_ALIASES["questions"].items()
    }
    if has_column["question"]:
        return "questions"
    if not _find_by_name("text", COLUMN_ALIASES["chunks"]["text"], names):
        return None
    is_log = (
        has_column["answer"]
        or (has_column["user_id"] and has_column["created_at"])
        or any(normalize_name(name) == "role" for name in names)
    )
    return "questions" if is_log else "chunks"


def iter_values(rows: Iterable[Mapping[str, Any]], name: str) -> Iterator[Any]:
    """Yield the values under a name that are not empty."""
    return (value for row in rows if not is_empty(value := get_value(row, name)))


def is_empty(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN, a blank text, or a text that programs write for these."""
    return value is None or value != value or (isinstance(value, str) and (not value.strip() or value in MISSING_TEXTS))


def get_value(cells: Mapping[str, Any], name: str) -> Any:
    """Return the value under a name; dots lead into nested objects."""
    if name in cells:
        return cells[name]
    value: Any = cells
    for part in name.split("."):
        value = as_object(value)
        if value is None:
            return None
        value = value.get(part)
    return value


def as_object(value: Any) -> Mapping[str, Any] | None:
    """Return the object that a value is or that its text contains as JSON; None if there is none."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def _has_content_of(target: str, values: Sequence[Any]) -> bool:
    if target == "confluence_url":
        return bool(values) and _share_of(values, lambda value: re.match(r"https?://\S+$", str(value).strip())) > 0.8
    return bool(values) and _share_of(values, _is_date) > 0.9


def _is_date(value: Any) -> bool:
    """Return whether a value is a time whatever its name; a number may be an id."""
    return not DIGITS.fullmatch(str(value).strip()) and _can_parse("created_at", value)


def _is_mark(value: Any) -> bool:
    return _can_parse("score", value) and 1 <= float(value) <= 5


def _can_parse(target: str, value: Any) -> bool:
    try:
        parse_value(target, value)
    except BadValue:
        return False
    return True


def _share_of(values: Sequence[Any], predicate: Callable[[Any], object]) -> float:
    return sum(bool(predicate(value)) for value in values) / len(values)
