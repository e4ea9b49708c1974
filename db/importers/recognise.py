"""Which column of a stranger's table is which of ours: by known shapes, by names in Russian and English, by values.

A proposal is never a guess: of several columns that could be one of ours none is taken, and all are named.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from yarus.db.importers.cells import LIST_STYLES
from yarus.db.importers.shapes import PASSAGES, Shape, shape_of
from yarus.db.importers.traces.values import question_in
from yarus.db.importers.values import NUMBER, BadValue, parse
from yarus.db.importers.votes import are_votes, is_against, is_of_users, is_vote_or_number
from yarus.db.words import Words

Kind = Literal["questions", "chunks"]
SAMPLED = 200
"""Rows that are looked at."""
NAME = 120
"""Characters that the name of a page has at the most."""

SHARED = {
    "id": "id|uuid|guid|ид|идентификатор|номер|код|n|no|pk",
    "confluence_url": "confluence_url|page_url|url|urls|link|links|href|page|pages|source_url|document_url|doc_url|"
    "source|sources|path|file_name|filename|file_path|cited_articles|cited_pages|citations|fuentes|ссылка|ссылки|адрес|страница|страницы|источник|"
    "источники|ссылка_на_страницу|адрес_страницы|url_страницы|показанная_страница|показанные_страницы",
}
NAMES: dict[Kind, dict[str, str]] = {
    "questions": SHARED
    | {
        "id": f"{SHARED['id']}|question_id|qa_id|query_id|qid|case_id|test_id|item_id|example_id|message_id|msg_id|"
        "request_id|log_id|id_вопроса|номер_вопроса",
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
    "chunks": SHARED
    | {
        "id": f"{SHARED['id']}|chunk_id|page_id|doc_id|docid|document_id|passage_id|id_страницы|id_фрагмента",
        "text": "text|content|contents|body|chunk|passage|page_content|chunk_text|page_text|текст|содержание|"
        "содержимое|фрагмент|статья|текст_страницы|текст_фрагмента|тело",
        "embedding": "embedding|vector|эмбеддинг|вектор",
        "page_title": "page_title|title|заголовок|название",
    },
}
"""Our column -> what others call it: words joined by _, in small letters, е for ё; of scores those that `votes` tells
by their words, too."""
QUESTIONS = (
    "questions", "query", "queries", "user_question", "user_query", "user_message", "вопрос", "вопросы", "запрос",
)  # fmt: skip
"""Names of a question that may stand beside our own name and mean another text."""
REFERENCE_PARENTS = ("expected", "expectations", "reference", "gold", "ground_truth", "reference_outputs")
"""Objects within which an answer is the reference, and pages are the right ones."""
OF_JUDGES = ("reason", "judge", "critique", "explanation", "эксперт", "комментарий_эксперта")
"""Words in names of columns beside which a mark is a judge's, not a user's, unless the table is a log."""
METRICS = ("faithfulness", "relevancy", "answer_relevance", "correctness", "context_precision", "context_recall")
"""Words in names of columns beside which a mark is a judge's in a log, too."""
INVERTED = ("unanswerable", "is_impossible", "expect_refusal", "should_refuse")
"""Names by which a yes says that there is no answer."""
MISSING = frozenset(("nan", "NaN", "null", "NULL", "NaT", "<NA>", "#N/A", "\\N"))
"""What programs write for a value that is missing, and no person as an answer."""
PLAIN_NAMES = {"page_url": "confluence_url"}
"""What else our own columns may be called by `--map`."""
REQUIRED: dict[Kind, str] = {"questions": "question", "chunks": "text"}
BY_CONTENT = ("confluence_url", "created_at")
"""Columns that their values alone tell."""
EITHER = ("answer", "answers", "a", "ответ", "ответы")
"""Names of an answer that may be the bot's or the reference."""
OF_A_LOG = (
    "user_id", "created_at", "score", "dialog_id", "turn", "contexts", "latency_ms", "tokens_out", "error", "trace_id",
)  # fmt: skip
"""Columns that a log has beside its answers; a test set has none of them."""
BESIDE_ANSWERS = ("latency", "model", "provider", "модель")
"""What else a log has, that is none of our columns."""


@dataclass
class Proposal:
    """What a table seems to hold."""

    kind: Kind | None
    """None where it could be either, or neither."""
    mapping: dict[str, str] = field(default_factory=dict)
    """Our column -> theirs."""
    doubtful: dict[str, list[str]] = field(default_factory=dict)
    """Our column -> several of theirs, or one whose values it cannot take."""
    unused: list[str] = field(default_factory=list)
    shape: Shape | None = None
    """Whose table it is."""
    notes: list[str] = field(default_factory=list)
    """What was decided by the rest of the table, and how to say otherwise."""


def propose(
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    kind: Kind | None = None,
    mapped: Mapping[str, str] | None = None,
) -> Proposal:
    """Propose what the columns of a table are.

    Args:
        names: of its columns; of nested values with dots.
        rows: the first ones, by these names.
        kind: where it is known.
        mapped: our column -> theirs, where somebody knows it.
    """
    mapped = mapped or {}
    filled = {name: values for name in names if (values := list(iterate_values(rows, name)))}
    shape = shape_of({plain(name) for name in names}, {plain(name) for name in filled})
    if shape is not None and kind in (None, shape.kind):
        proposal = Proposal(shape.kind, _columns_of(shape, names, filled, mapped), shape=shape)
    elif kind := kind or _kind(names):
        proposal = Proposal(kind, dict(mapped))
    else:
        return Proposal(None, unused=list(names))
    _propose_by_names(proposal, names, filled, mapped)
    _note_unused(proposal, names)
    question = proposal.mapping.get("question", "")
    if "history" not in {*proposal.mapping, *proposal.doubtful} and _has_history(filled.get(question, ())):
        proposal.mapping["history"] = question
    return proposal


def _has_history(questions: Sequence[Any]) -> bool:
    """Whether questions are the last of messages."""
    talks = [value for value in questions if not isinstance(value, str) or value.lstrip().startswith(("[", "{"))]
    return any(question_in(talk)[1] for talk in talks)


def _columns_of(
    shape: Shape, names: Sequence[str], filled: Mapping[str, list[Any]], mapped: Mapping[str, str]
) -> dict[str, str]:
    """The columns that a shape has, and those that somebody knows."""
    by_plain = {plain(name): name for name in reversed(names)}
    columns = dict(mapped)
    for ours, theirs in shape.columns.items():
        candidates = [by_plain[name] for name in theirs if name in by_plain and by_plain[name] not in mapped.values()]
        named = [name for name in candidates if name in filled] or candidates[:1]
        if named and ours not in mapped:
            columns[ours] = named[0]
    return columns


def _propose_by_names(
    proposal: Proposal, names: Sequence[str], filled: Mapping[str, list[Any]], mapped: Mapping[str, str]
) -> None:
    """Propose, by their names and values, what the columns are that nobody knows and no shape has."""
    known = tuple(proposal.mapping.values())
    free = [name for name in names if not any(theirs == name or theirs.startswith(f"{name}.") for theirs in known)]
    for ours, aliases in NAMES[proposal.kind or "questions"].items():
        if ours in proposal.mapping:
            continue
        within = tuple(f"{theirs}." for theirs in known) if ours in ("answer", "ground_truth_answer") else ()
        theirs = _named(ours, aliases, [name for name in free if not name.startswith(within)])
        if ours == "score":
            theirs = _of_users(theirs, filled, proposal)
        fitting = _fitting(ours, theirs, filled)
        if ours == "question":
            fitting += _rivals(fitting, free, filled)
        if len(fitting) == 1 and not (len(theirs) > 1 and any(map(is_against, theirs))):
            proposal.mapping[ours] = fitting[0]
        elif theirs:
            proposal.doubtful[ours] = fitting if len(fitting) > 1 else theirs
    if proposal.kind == "questions":
        _settle(proposal, filled, mapped)
        if "answer" not in proposal.mapping and "ground_truth_answer" in proposal.mapping:
            return
    _propose_by_content(proposal, names, filled)


def _propose_by_content(proposal: Proposal, names: Sequence[str], filled: Mapping[str, list[Any]]) -> None:
    taken = {*proposal.mapping.values(), *(name for several in proposal.doubtful.values() for name in several)}
    for ours in BY_CONTENT:
        alike = [name for name in names if name not in taken and _is(ours, filled.get(name, []))]
        known = {*proposal.mapping, *proposal.doubtful}
        if ours in NAMES[proposal.kind or "questions"] and ours not in known and alike:
            if len(alike) == 1:
                proposal.mapping[ours] = alike[0]
            else:
                proposal.doubtful[ours] = alike
            taken.update(alike)


def _of_users(theirs: Sequence[str], filled: Mapping[str, list[Any]], proposal: Proposal) -> list[str]:
    """Those of the columns that users gave by their names, if there are such; else all."""
    given = [name for name in theirs if is_of_users(_own_name(name)) and name in filled]
    given = [name for name in given if _share(filled[name], is_vote_or_number) > 0.5]
    others = [name for name in theirs if name not in given and name in filled and not is_of_users(_own_name(name))]
    if not given:
        return list(theirs)
    for other in others:
        proposal.notes.append(
            Words(
                "{other!r} is not used as score, for users gave {theirs!r} by its name; if it is theirs: --map {map}",
                other=other, theirs=given[0], map=shell_word(f"score={other}"),
            )
        )  # fmt: skip
    return given


def _rivals(questions: Sequence[str], names: Sequence[str], filled: Mapping[str, list[Any]]) -> list[str]:
    """Columns beside the one with our name whose texts are other questions."""
    if list(questions) != ["question"]:
        return []
    asked = set(map(str, filled.get("question", ())))
    others = [name for name in names if name != "question" and plain(name) in QUESTIONS and name in filled]
    return [
        name for name in others if _share(filled[name], lambda text: isinstance(text, str) and text not in asked) > 0.5
    ]


def _fitting(ours: str, theirs: Sequence[str], filled: Mapping[str, list[Any]]) -> list[str]:
    """Those of the columns whose values one of ours can take; of several ids the first, of others those with values."""
    exact = {ours, *(name for name, known_as in PLAIN_NAMES.items() if known_as == ours)}
    fitting = [name for name in theirs if fits(ours, filled.get(name, []), exact=plain(name) in exact, name=name)]
    if ours == "id":
        return fitting[:1]
    return [name for name in fitting if name in filled] or fitting


def _named(ours: str, aliases: str, names: Sequence[str]) -> list[str]:
    """The columns with a name for one of ours: its own, the whole name, or the last part of a name with dots."""
    if ours in names and ours != "score":
        return [ours]
    spellings = aliases.split("|")
    if ours == "answer" and "q" in map(plain, names):
        spellings.append("a")
    whole = [name for alias in spellings for name in names if plain(name) == alias]
    if ours == "score":
        whole += [name for name in names if is_of_users(name)]
    whole = [name for name in whole if not any(other.startswith(f"{name}.") for other in whole)]
    if whole or ours == "id":
        return whole
    return [name for name in names if "." in name and _fits_by_last(ours, name, spellings)]


def _fits_by_last(ours: str, name: str, spellings: Sequence[str]) -> bool:
    """Whether the last part of a name with dots is one of ours; what stands within a reference is of the reference."""
    parent, _, last = name.rpartition(".")
    if plain(parent.rpartition(".")[2]) in REFERENCE_PARENTS:
        within = {"ground_truth_answer": "answer", "relevant_urls": "confluence_url"}.get(ours)
        return within is not None and plain(last) in NAMES["questions"][within].split("|")
    is_ours = plain(last) in spellings or (ours == "score" and is_of_users(last))
    return is_ours and plain(name) not in _known_names()


def _settle(proposal: Proposal, filled: Mapping[str, list[Any]], mapped: Mapping[str, str]) -> None:
    """Decide what a name leaves open by the rest of the table.

    `answer` beside nothing of a log is the reference; contexts without an answer are what is relevant; pages beside a
    reference and no answer are the right ones.
    """
    mapping, notes = proposal.mapping, proposal.notes
    _settle_answers(proposal, filled, mapped)
    _settle_score(proposal, filled)
    if {"answer", "contexts", "confluence_url"} & proposal.doubtful.keys():
        return
    answered = "answer" in mapping and mapping["answer"] in filled
    contexts = mapping.get("contexts")
    if contexts is not None and "contexts" not in mapped and not answered and "history" not in mapping:
        del mapping["contexts"]
        if not {"relevant_chunk_ids"} & {*mapping, *proposal.doubtful} and contexts in filled:
            mapping["relevant_chunk_ids"] = contexts
            notes.append(
                Words(
                    "{theirs!r} is taken as the relevant passages, for there is no answer that was made of them; if it "
                    "is what the bot was given: --map {map}",
                    theirs=contexts, map=shell_word(f"contexts={contexts}"),
                )
            )  # fmt: skip
    page = mapping.get("confluence_url")
    unlabelled = not {"relevant_urls"} & {*mapping, *proposal.doubtful}
    is_told = page is None or "confluence_url" in mapped or plain(page) == "confluence_url"
    if page is not None and not is_told and not answered and "ground_truth_answer" in mapping and unlabelled:
        mapping["relevant_urls"] = mapping.pop("confluence_url")
        notes.append(
            Words(
                "{theirs!r} is taken as the relevant page, for there is no answer that was made of it; if the bot "
                "showed it: --map {map}",
                theirs=page, map=shell_word(f"page_url={page}"),
            )
        )  # fmt: skip


def _settle_answers(proposal: Proposal, filled: Mapping[str, list[Any]], mapped: Mapping[str, str]) -> None:
    """Tell the reference from the bot's answer where a column may be either."""
    mapping, notes = proposal.mapping, proposal.notes
    if proposal.shape is not None or {"ground_truth_answer"} & {*mapping, *proposal.doubtful}:
        return
    names = proposal.doubtful.get("answer") or ([mapping["answer"]] if "answer" in mapping else [])
    either = [name for name in names if plain(name.rpartition(".")[2]) in EITHER and name not in mapped.values()]
    if len(either) != 1:
        return
    others = [name for name in filled if name != either[0] and "answer" in find_columns(name) and name not in EITHER]
    is_other = len(others) == 1 and (others[0] in names or others[0] not in mapping.values())
    if is_other or mapped.get("answer") in others:
        proposal.doubtful.pop("answer", None)
        mapping["ground_truth_answer"], mapping["answer"] = either[0], mapped.get("answer") or others[0]
        notes.append(
            Words(
                "{theirs!r} is taken as the reference, for {other!r} is what the bot said; if it is otherwise: "
                "--map {map}",
                theirs=either[0], other=mapping["answer"], map=shell_word(f"answer={either[0]}"),
            )
        )  # fmt: skip
        return
    if "answer" not in mapping:
        return
    of_a_log = [name for name in OF_A_LOG if name in proposal.doubtful or mapping.get(name) in filled]
    of_a_log += [name for name in filled if plain(name) in BESIDE_ANSWERS or is_of_users(_own_name(name))]
    labelled = {"relevant_urls", "relevant_chunk_ids", "answerable"} & mapping.keys()
    if not of_a_log or (of_a_log == ["contexts"] and labelled):
        mapping["ground_truth_answer"] = mapping.pop("answer")
        notes.append(
            Words(
                "{theirs!r} is taken as the reference, for nothing else of a log is there (user, time, vote, "
                "contexts); if it is what the bot said: --map {map}",
                theirs=either[0], map=shell_word(f"answer={either[0]}"),
            )
        )  # fmt: skip
    elif of_a_log == ["contexts"]:
        notes.append(
            Words(
                "{theirs!r} is taken as what the bot said, for {contexts!r} is what it was given; if it is the "
                "reference: --map {map}",
                theirs=either[0], contexts=mapping["contexts"], map=shell_word(f"ground_truth_answer={either[0]}"),
            )
        )  # fmt: skip


def _settle_score(proposal: Proposal, filled: Mapping[str, list[Any]]) -> None:
    """Leave out a mark that stands beside a judge's reasons or metrics, unless its name says that users gave it."""
    mapping = proposal.mapping
    is_log = "user_id" in mapping or "created_at" in mapping
    words = METRICS if is_log else METRICS + OF_JUDGES
    score = mapping.get("score", "")
    beside = {plain(name) for name in filled if name != score}
    is_explained = not is_log and "feedback" in beside  # as a judge explains its `feedback_score`
    is_given = is_of_users(_own_name(score)) and not (is_explained and plain(_own_name(score)).startswith("feedback"))
    is_judged = is_explained or any(word in name for name in beside for word in words)
    if score and is_judged and not is_given:
        proposal.doubtful["score"] = [mapping.pop("score")]


def _note_unused(proposal: Proposal, names: Sequence[str]) -> None:
    taken = {*proposal.mapping.values(), *(name for several in proposal.doubtful.values() for name in several)}
    parents = {name.partition(".")[0] for name in taken}
    proposal.unused = [name for name in names if name not in taken and not ("." not in name and name in parents)]
    proposal.unused = [name for name in proposal.unused if name.partition(".")[0] not in taken]


def _own_name(name: str) -> str:
    """The name of a column within its object, unless the whole name tells it."""
    return name if is_of_users(name) else name.rpartition(".")[2]


@cache
def plain(name: str) -> str:
    """A column's name as the lists above have it."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-zа-я])(?=[A-ZА-Я])", " ", name).casefold().replace("ё", "е"))
    return ("__" if name.startswith("__") else "") + "_".join(words) or ("n" if "№" in name else "")


@cache
def _known_names() -> frozenset[str]:
    names = {alias for kind in NAMES.values() for aliases in kind.values() for alias in aliases.split("|")}
    return frozenset(
        names | {*PASSAGES, "vars", "test_case", "messages", "retrieval_gt", "generation_gt", "expectations"}
    )


def is_known(name: str) -> bool:
    """Whether anybody's tables call a column so."""
    name = str(name)
    return (
        plain(name) in _known_names()
        or plain(name.rpartition(".")[2]) in _known_names()
        or is_of_users(_own_name(name))
    )


def advise(ours: str, several: Sequence[str]) -> Words:
    """Return why columns that could be one of ours are not used, and how to use one of them."""
    names, map_first = ", ".join(several), shell_word(f"{ours}={several[0]}")
    if ours == "score" and any(map(is_against, several)):
        return Words("{names}: votes for and against. Not used; put them in one column: 1, -1, or nothing", names=names)
    if len(several) > 1:
        return Words("{ours}: {names}? Not used; choose one: --map {ours}=COLUMN", ours=ours, names=names)
    if ours == "score":
        return Words(
            "score: {names}. Not used: 5 is good and 1 is bad here. If 1 is good and 0 or -1 is bad: --map {map}. "
            "Convert any other scale to 1 to 5 first",
            names=names, map=map_first,
        )  # fmt: skip
    return Words(
        "{ours}: {names} by its name, but not by its values. Not used; if it is: --map {map}",
        ours=ours, names=names, map=map_first,
    )  # fmt: skip


def find_columns(name: str) -> set[str]:
    """Return our columns that other tables call so."""
    return {ours for names in NAMES.values() for ours, aliases in names.items() if plain(name) in aliases.split("|")}


def shell_word(text: str) -> str:
    """A word of a command as a shell takes it: in quotes only where it must be, which letters of no alphabet need."""
    return text if re.fullmatch(r"[\w@%+=:,./№-]+", text) else shlex.quote(text)


def fits(ours: str, values: Sequence[Any], *, exact: bool = False, name: str = "") -> bool:
    """Whether a column of ours could take most of these values; a column without any says nothing against it.

    Args:
        ours: the column.
        values: of a column of theirs that are not empty.
        exact: whether theirs is called as ours, so that half of them are enough.
        name: what theirs is called, by which 0 and 1 are votes.
    """
    enough = 0.5 if exact else 0.8
    if ours == "score":  # 1 is bad and 5 is good with us: another scale would be read the wrong way round
        if not values or are_votes(values, _own_name(name)):
            return bool(values) or exact
        written = {str(value).removesuffix(".0") for value in values}
        is_telling = written == {"1"} or not written.isdisjoint("2345") if exact else "5" in written
        return is_telling and _share(values, _is_mark) > enough
    if ours == "relevant_urls":
        return not values or _share(values, lambda value: _names_pages(value) or len(str(value)) <= NAME) > enough
    if ours == "confluence_url" and not exact:
        texts = [value for value in values if not isinstance(value, int | float)]
        return not values or _share(values, lambda value: value in texts and _names_pages(value)) > enough
    if ours == "id":
        unique = len({*map(str, values)}) / len(values) if values else 0
        return unique > 0.5 if exact else unique == 1
    if ours in LIST_STYLES:
        return True  # how their items are parted is told by all of them
    if ours == "ground_truth_answer":
        return not values or _share(values, _is_reference) > enough or exact
    if ours in ("question", "answer", "text"):
        return (
            not values
            or _share(values, lambda value: not isinstance(value, bytes | bool | int | float)) > enough
            or exact
        )
    return not values or _share(values, lambda value: _parses(ours, value)) > enough


def _is_reference(value: Any) -> bool:
    """Whether a value may be a reference answer: no bytes, no address, no name of a file."""
    texts = value if isinstance(value, list) else [value]
    return not isinstance(value, bytes) and not any(
        isinstance(text, str) and re.fullmatch(r"https?://\S+|[\w/.-]+\.(?:md|html?|pdf|docx?|txt)", text.strip())
        for text in texts
    )


def _names_pages(value: Any) -> bool:
    """Whether a value looks like names of pages: addresses, files, lists of them, or whole numbers."""
    if isinstance(value, int | list | dict):
        return not isinstance(value, bool)
    text = str(value)
    return "/" in text or "." in text or text.startswith(("[", "{")) or text.isdigit()


def _kind(names: Sequence[str]) -> Kind | None:
    """By the names of what each must have; a log may have a column `text`, too."""
    has = {ours: bool(_named(ours, aliases, names)) for ours, aliases in NAMES["questions"].items()}
    if has["question"]:
        return "questions"
    if not _named("text", NAMES["chunks"]["text"], names):
        return None
    is_log = has["answer"] or (has["user_id"] and has["created_at"]) or any(plain(name) == "role" for name in names)
    return "questions" if is_log else "chunks"


def iterate_values(rows: Iterable[Mapping[str, Any]], name: str) -> Iterator[Any]:
    """Yield the values under a name that are not empty."""
    return (value for row in rows if not is_empty(value := value_at(row, name)))


def is_empty(value: Any) -> bool:
    """Whether a cell has nothing in it: None, NaN, a text without a letter, or how programs write these."""
    return value is None or value != value or (isinstance(value, str) and (not value.strip() or value in MISSING))


def value_at(cells: Mapping[str, Any], name: str) -> Any:
    """The value under a name, or under a name with dots within objects."""
    if name in cells:
        return cells[name]
    value: Any = cells
    for part in name.split("."):
        value = object_in(value)
        if value is None:
            return None
        value = value.get(part)
    return value


def object_in(value: Any) -> Mapping[str, Any] | None:
    """The object that a value is, or that a text is as JSON; None where it is none."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def _is(ours: str, values: Sequence[Any]) -> bool:
    if ours == "confluence_url":
        return bool(values) and _share(values, lambda value: re.match(r"https?://\S+$", str(value).strip())) > 0.8
    return bool(values) and _share(values, _is_date) > 0.9


def _is_date(value: Any) -> bool:
    """Whether a value is a time whatever its name: a number may be an id."""
    return not NUMBER.fullmatch(str(value).strip()) and _parses("created_at", value)


def _is_mark(value: Any) -> bool:
    return _parses("score", value) and 1 <= float(value) <= 5


def _parses(ours: str, value: Any) -> bool:
    try:
        parse(ours, value)
    except BadValue:
        return False
    return True


def _share(values: Sequence[Any], holds: Callable[[Any], object]) -> float:
    return sum(bool(holds(value)) for value in values) / len(values)
