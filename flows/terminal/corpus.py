"""Corpus analytics for people, on stdout."""

from typing import Any

from rich.table import Table

from flows.terminal.summary import new_console, plain

TOPICS, NEXT, DEAD = 12, 5, 5
RU = {
    "chunks": "Фрагменты",
    "pages": "Страницы",
    "used": "{what}: хоть раз найдено {retrieved} из {total} ({share:.1%}), ни разу {n_dead}.",
    "over what": "Прогонов: {n}, вопросов: {questions}, глубина до {k}.",
    "unknown": "{what}: {total}; что из них находится, неизвестно.",
    "dead": "Ни разу не найдено, например: {names}",
    "over used": "Попадается в {times:.1f} раза чаще среднего: {name}",
    "topics": "Темы вопросов, от большой к малой",
    "more": "… и ещё {n}",
    "topic": "Тема",
    "questions": "Вопросов",
    "hit rate": "Найдено",
    "failure rate": "Ответ плох",
    "missing": "Нет страницы",
    "next": "Что написать в первую очередь",
    "gain": "{place}. {label}: {n} вопросов, без страницы {n_missing}, ожидаемая польза {gain:g}",
    "asked": "   спрашивают: {examples}",
    "gone": "   пропавшие страницы: {pages}",
    "nothing": "Писать нечего: у каждого вопроса есть страница, и она находится.",
    "profile": "Вопрос: в середине {median:g} знаков, 95 % короче {p95:g}. Кириллица {cyrillic:.1%}, "
    "латиница {latin:.1%}, смешанных {mixed:.1%}.",
    "unexplained": "Сокращения, которых нет в корпусе: {words}",
    "growth": "Вопросов в месяц: {months}",
    "embedder": "Темы и карта по эмбеддеру {embedder}. Карта и всё остальное: yarus corpus --json",
}
EN = {
    "chunks": "Chunks",
    "pages": "Pages",
    "used": "{what}: {retrieved} of {total} were ever retrieved ({share:.1%}), {n_dead} never.",
    "over what": "Over {n} evaluations and {questions} questions, to a depth of {k}.",
    "unknown": "{what}: {total}; which of them are retrieved is not known.",
    "dead": "Never retrieved, for example: {names}",
    "over used": "Retrieved {times:.1f} times as often as the average: {name}",
    "topics": "Topics of the questions, largest first",
    "more": "… and {n} more",
    "topic": "Topic",
    "questions": "Questions",
    "hit rate": "Found",
    "failure rate": "Bad answer",
    "missing": "No page",
    "next": "What to write next",
    "gain": "{place}. {label}: {n} questions, {n_missing} without a page, expected gain {gain:g}",
    "asked": "   people ask: {examples}",
    "gone": "   pages that are gone: {pages}",
    "nothing": "Nothing to write: every question has a page, and it is found.",
    "profile": "A question: {median:g} characters in the middle, 95 % below {p95:g}. Cyrillic {cyrillic:.1%}, Latin "
    "{latin:.1%}, mixed {mixed:.1%}.",
    "unexplained": "Abbreviations that the corpus does not have: {words}",
    "growth": "Questions a month: {months}",
    "embedder": "Topics and map by the embedder {embedder}. The map and all else: yarus corpus --json",
}
TEXTS = {"ru": RU, "en": EN}


def print_corpus(document: dict[str, Any], language: str) -> None:
    """What is used, the topics, what to write next, and the profile of the log."""
    texts, console = TEXTS[language], new_console()
    for line in _utilisation(document["utilisation"], texts):
        console.print(plain(line), soft_wrap=True)
    console.print("", _topics(document["topics"], texts))
    console.print(f"\n{texts['next']}", style="bold")
    for line in _next(document["next"], texts) if document["next"] else (texts["nothing"],):
        console.print(plain(line), soft_wrap=True)
    console.print()
    for line in _profile(document["profile"], texts):
        console.print(plain(line), soft_wrap=True)
    console.print(plain(texts["embedder"].format(embedder=document["embedder"].split("|")[0])), style="dim")


def _utilisation(used: dict[str, Any], texts: dict[str, str]) -> list[str]:
    lines = [used["reason"]] if used["reason"] else []
    if used["evaluations"]:
        lines += [texts["over what"].format(n=len(used["evaluations"]), questions=used["n_questions"], k=used["k"])]
    for name in ("chunks", "pages"):
        part = used[name]
        lines.append(texts["unknown" if part["share"] is None else "used"].format(what=texts[name], **part))
        if part["dead"]:
            named = "; ".join(str(item.get("id") or item["page"]) for item in part["dead"][:DEAD])
            lines.append(texts["dead"].format(names=named))
        lines += [
            texts["over used"].format(times=item["times"], name=item.get("id") or item["page"])
            for item in part["over_used"][:DEAD]
        ]
    return lines


def _topics(topics: list[dict[str, Any]], texts: dict[str, str]) -> Table:
    table = Table(title=texts["topics"], box=None, title_justify="left", title_style="bold")
    for name in ("topic", "questions", "hit rate", "failure rate", "missing"):
        table.add_column(texts[name], justify="left" if name == "topic" else "right")
    for topic in topics[:TOPICS]:
        rates = (topic["hit_rate"], topic["failure_rate"], topic["missing_rate"])
        table.add_row(
            plain(topic["label"]), str(topic["n"]), *("—" if rate is None else f"{rate:.0%}" for rate in rates)
        )
    if len(topics) > TOPICS:
        table.add_row(texts["more"].format(n=len(topics) - TOPICS))
    return table


def _next(wanted: list[dict[str, Any]], texts: dict[str, str]) -> list[str]:
    lines = []
    for place, topic in enumerate(wanted[:NEXT], start=1):
        lines.append(texts["gain"].format(place=place, **topic))
        if topic["examples_unserved"]:
            lines.append(texts["asked"].format(examples=" | ".join(topic["examples_unserved"])))
        if topic["missing_pages"]:
            lines.append(texts["gone"].format(pages=", ".join(page["page"] for page in topic["missing_pages"])))
    return lines


def _profile(profile: dict[str, Any], texts: dict[str, str]) -> list[str]:
    lines = [texts["profile"].format(**profile["lengths"]["question_characters"], **profile["scripts"])]
    unexplained = [item["abbreviation"] for item in profile["abbreviations"] if not item["chunks"]]
    if unexplained:
        lines.append(texts["unexplained"].format(words=", ".join(unexplained)))
    if profile["growth"]["months"]:
        months = ", ".join(f"{month['month']} {month['n']}" for month in profile["growth"]["months"][-12:])
        lines.append(texts["growth"].format(months=months))
    return lines
