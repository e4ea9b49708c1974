"""Corpus analytics for people, on stdout."""

from collections.abc import Sequence

from rich.table import Table

from yarus.flows.terminal.printing import new_console, plain, titled_table
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.corpus.corpus_schema import CorpusAnalytics, Profile, Topic, TopicInShort, Utilisation
from yarus.tasks.dataset.corpus.profile import counted_apart, outside, rests_on

TOPICS, NEXT, DEAD = 12, 5, 5


def print_corpus(document: CorpusAnalytics, language: str) -> None:
    """What is used, the topics, what to write next, and the profile of the log."""
    words, console = texts("corpus", language), new_console()
    for line in _utilisation(document["utilisation"], words, language):
        console.print(plain(line), soft_wrap=True)
    if document["topics"]:
        console.print("", _topics(document["topics"], words))
    for line in filter(None, (*outside(document, language), counted_apart(document["chatter"], language))):
        console.print(plain(line), soft_wrap=True)
    console.print(f"\n{words['next']}", style="bold")
    for line in _next(document["next"], words, language) if document["next"] else (words["nothing"],):
        console.print(plain(line), soft_wrap=True)
    console.print()
    for line in _profile(document["profile"], words):
        console.print(plain(line), soft_wrap=True)
    embedder = told(document["embedder"].split("|")[0], language)
    console.print(plain(words["embedder"].format(embedder=embedder)), style="dim")


def _utilisation(used: Utilisation, words: dict[str, str], language: str) -> list[str]:
    lines = [told(used["reason"], language)] if used["reason"] else []
    if used["evaluations"]:
        lines += [words["over what"].format(n=len(used["evaluations"]), questions=used["n_questions"], k=used["k"])]
    for name, part in (("chunks", used["chunks"]), ("pages", used["pages"])):
        lines.append(words["unknown" if part["share"] is None else "used"].format(what=words[name], **part))
        if part["dead"]:
            named = "; ".join(str(item.get("id") or item["page"]) for item in part["dead"][:DEAD])
            lines.append(words["dead"].format(names=named))
        lines += [
            words["over used"].format(times=item["times"], name=item.get("id") or item["page"])
            for item in part["over_used"][:DEAD]
        ]
    return lines


def _topics(topics: Sequence[Topic], words: dict[str, str]) -> Table:
    table = titled_table(words["topics"])
    for name in ("topic", "questions", "cohesion", "hit rate", "failure rate", "missing"):
        table.add_column(words[name], justify="left" if name == "topic" else "right")
    for topic in topics[:TOPICS]:
        rates = (topic["hit_rate"], topic["failure_rate"], topic["missing_rate"])
        table.add_row(
            plain(topic["label"]),
            str(topic["n"]),
            f"{topic['cohesion']:.2f}",
            *("—" if rate is None else f"{rate:.0%}" for rate in rates),
        )
    if len(topics) > TOPICS:
        table.add_row(words["more"].format(n=len(topics) - TOPICS))
    return table


def _next(wanted: Sequence[TopicInShort], words: dict[str, str], language: str) -> list[str]:
    lines = []
    for place, topic in enumerate(wanted[:NEXT], start=1):
        lines.append(f"{place}. {topic['label']}: {'; '.join(rests_on(topic, language))}")
        if topic["examples_unserved"]:
            lines.append(words["asked"].format(examples=" | ".join(topic["examples_unserved"])))
        if topic["missing_pages"]:
            lines.append(words["gone"].format(pages=", ".join(page["page"] for page in topic["missing_pages"])))
    return lines


def _profile(profile: Profile, words: dict[str, str]) -> list[str]:
    lengths = profile["lengths"]["question_characters"] or {}
    lines = [words["profile"].format(**lengths, **profile["scripts"])]
    unexplained = [item["abbreviation"] for item in profile["abbreviations"] if not item["chunks"]]
    if unexplained:
        lines.append(words["unexplained"].format(words=", ".join(unexplained)))
    if profile["growth"]["months"]:
        months = ", ".join(f"{month['month']} {month['n']}" for month in profile["growth"]["months"][-12:])
        lines.append(words["growth"].format(months=months))
    return lines
