"""Which column of a stranger's table is which of ours: by names in Russian and English, held against the content.

A proposal is never a guess: of several columns that could be one of ours none is taken, and all are named.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from db.importers.values import BadValue, parse

Kind = Literal["questions", "chunks"]
SAMPLED = 200
"""Rows that are looked at."""
PAGE = 300
"""Characters; a text that is longer in the middle is rather a passage than a question."""

SHARED = {
    "id": "id|uuid|guid|ид|идентификатор|номер|код|n|no|pk",
    "confluence_url": "confluence_url|url|urls|link|href|page|page_url|source_url|document_url|doc_url|source|"
    "ссылка|адрес|страница|источник|ссылка_на_страницу|адрес_страницы|url_страницы|показанная_страница",
}
NAMES: dict[Kind, dict[str, str]] = {
    "questions": SHARED
    | {
        "id": f"{SHARED['id']}|question_id|qa_id|message_id|msg_id|request_id|log_id|id_вопроса|номер_вопроса",
        "question": "question|query|q|user_question|user_query|user_message|request|input|вопрос|запрос|текст_вопроса|"
        "вопрос_пользователя|текст_запроса|обращение|сообщение_пользователя|question_text|query_text",
        "answer": "answer|response|reply|bot_answer|bot_response|output|completion|answer_text|ответ|ответ_бота|"
        "текст_ответа|ответ_системы",
        "score": "score|rating|mark|stars|feedback|user_score|оценка|рейтинг|балл|оценка_пользователя|отзыв",
        "user_id": "user_id|user|userid|client_id|client|author|chat_id|telegram_id|vk_id|пользователь|"
        "id_пользователя|ид_пользователя|клиент|студент|автор",
        "created_at": "created_at|created|timestamp|date|datetime|time|ts|asked_at|created_on|дата|время|дата_время|"
        "дата_и_время|дата_вопроса|время_вопроса|создан|создано|дата_создания",
        "ground_truth_answer": "ground_truth_answer|ground_truth|reference|reference_answer|expected_answer|"
        "gold_answer|эталон|эталонный_ответ|правильный_ответ|ожидаемый_ответ",
        "relevant_urls": "relevant_urls|relevant_url|expected_url|expected_urls|gold_url|правильная_страница|"
        "правильная_ссылка|эталонная_ссылка",
        "relevant_chunk_ids": "relevant_chunk_ids|relevant_chunks|gold_chunks|expected_chunks",
        "answerable": "answerable|is_answerable|есть_ответ",
        "cluster": "cluster|topic|category|тема|категория|рубрика|раздел",
        "dialog_id": "dialog_id|session_id|conversation_id|thread_id|диалог|сессия|id_диалога|id_сессии",
        "turn": "turn|turn_number|номер_реплики",
        "contexts": "contexts|retrieved_contexts|контексты",
        "latency_ms": "latency_ms",
        "embedding": "embedding|vector|эмбеддинг|вектор",
    },
    "chunks": SHARED
    | {
        "id": f"{SHARED['id']}|chunk_id|page_id|doc_id|document_id|passage_id|id_страницы|id_фрагмента",
        "text": "text|content|body|chunk|passage|page_content|chunk_text|page_text|текст|содержание|содержимое|"
        "фрагмент|статья|текст_страницы|текст_фрагмента|тело",
        "embedding": "embedding|vector|эмбеддинг|вектор",
    },
}
"""Our column -> what others call it: words joined by _, in small letters, е for ё."""
REQUIRED: dict[Kind, str] = {"questions": "question", "chunks": "text"}
BY_CONTENT = ("confluence_url", "created_at")
"""Columns that their values alone tell."""


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


def propose(names: Sequence[str], rows: Sequence[Mapping[str, Any]], kind: Kind | None = None) -> Proposal:
    """What the columns of a table are.

    Args:
        names: of its columns.
        rows: the first ones, by these names.
        kind: where it is known.
    """
    kind = kind or _kind(names, rows)
    if kind is None:
        return Proposal(None, unused=list(names))
    found = Proposal(kind)
    for ours, said in NAMES[kind].items():
        theirs = [ours] if ours in names else [name for name in names if plain(name) in said.split("|")]
        fitting = [name for name in theirs if fits(ours, _values(rows, name))]
        if len(fitting) == 1:
            found.mapping[ours] = fitting[0]
        elif theirs:
            found.doubtful[ours] = fitting or theirs
    taken = {*found.mapping.values(), *(name for several in found.doubtful.values() for name in several)}
    for ours in BY_CONTENT:
        alike = [name for name in names if name not in taken and _is(ours, _values(rows, name))]
        if ours in NAMES[kind] and ours not in (*found.mapping, *found.doubtful) and alike:
            if len(alike) == 1:
                found.mapping[ours] = alike[0]
            else:
                found.doubtful[ours] = alike
            taken.update(alike)
    found.unused = [name for name in names if name not in taken]
    return found


def plain(name: str) -> str:
    """A column's name as the lists above have it."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-zа-я])(?=[A-ZА-Я])", " ", name).casefold().replace("ё", "е"))
    return "_".join(words) or ("n" if "№" in name else "")


def shell_word(text: str) -> str:
    """A word of a command as a shell takes it: in quotes only where it must be, which letters of no alphabet need."""
    return text if re.fullmatch(r"[\w@%+=:,./№-]+", text) else shlex.quote(text)


def fits(ours: str, values: Sequence[Any]) -> bool:
    """Whether a column of ours could take most of these values; a column without any says nothing against it."""
    if ours == "score":  # 1 is bad and 5 is good with us: another scale would be read the wrong way round
        return bool(values) and {*map(str, values)} & {"5", "5.0"} != set() and _share(values, _is_mark) > 0.9
    if ours == "confluence_url":
        return not values or _share(values, lambda value: "/" in str(value) or "." in str(value)) > 0.8
    if ours == "id":
        return bool(values) and len({*map(str, values)}) == len(values)
    return not values or _share(values, lambda value: _parses(ours, value)) > 0.8


def _kind(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Kind | None:
    """By the names of what each must have; where both are there or none is, by the texts."""
    has = {
        kind: [name for name in names if plain(name) in NAMES[kind][ours].split("|")] for kind, ours in REQUIRED.items()
    }
    if bool(has["questions"]) != bool(has["chunks"]):
        return "questions" if has["questions"] else "chunks"
    if has["questions"]:  # both: a log may have a column `text`, too
        return "questions"
    return None


def _values(rows: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    values = (row.get(name) for row in rows)
    return [value for value in values if value is not None and str(value).strip()]


def _is(ours: str, values: Sequence[Any]) -> bool:
    if ours == "confluence_url":
        return bool(values) and _share(values, lambda value: re.match(r"https?://\S+$", str(value).strip())) > 0.8
    return bool(values) and _share(values, lambda value: _parses(ours, value)) > 0.9


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
