"""Print corpus analytics for people, on stdout."""

from collections.abc import Sequence

from rich.table import Table

from yarus.flows.terminal.printing import clean, make_console, make_titled_table
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.corpus.corpus_schema import ContentGap, CorpusAnalytics, CorpusUsage, LogProfile, Topic
from yarus.tasks.dataset.corpus.profile import content_gap_reasons, non_questions_text, unclustered_texts

MAX_TOPICS, MAX_NEXT, MAX_ITEMS = 12, 5, 5


def print_corpus(document: CorpusAnalytics, language: str) -> None:
    """Print how the corpus is used, the topics, what to write next, and the profile of the log."""
    words, console = texts("corpus", language), make_console()
    for line in _list_utilisation(document["utilisation"], words, language):
        console.print(clean(line), soft_wrap=True)
    if document["topics"]:
        console.print("", _make_topic_table(document["topics"], words))
    for line in filter(
        None, (*unclustered_texts(document, language), non_questions_text(document["non_questions"], language))
    ):
        console.print(clean(line), soft_wrap=True)
    console.print(f"\n{words['next']}", style="bold")
    for line in (
        _list_next_topics(document["content_gaps"], words, language)
        if document["content_gaps"]
        else (words["nothing"],)
    ):
        console.print(clean(line), soft_wrap=True)
    console.print()
    for line in _list_profile(document["profile"], words):
        console.print(clean(line), soft_wrap=True)
    embedder = told(document["embedder"].split("|")[0], language)
    console.print(clean(words["embedder"].format(embedder=embedder)), style="dim")


def _list_utilisation(used: CorpusUsage, words: dict[str, str], language: str) -> list[str]:
    lines = [told(used["reason"], language)] if used["reason"] else []
    if used["evaluations"]:
        lines += [words["over what"].format(n=len(used["evaluations"]), questions=used["n_questions"], k=used["k"])]
    for name, part in (("chunks", used["chunks"]), ("pages", used["pages"])):
        lines.append(words["unknown" if part["share"] is None else "used"].format(what=words[name], **part))
        if part["never_retrieved"]:
            names = "; ".join(str(item.get("id") or item["page"]) for item in part["never_retrieved"][:MAX_ITEMS])
            lines.append(words["dead"].format(names=names))
        lines += [
            words["over used"].format(times=item["ratio_to_mean"], name=item.get("id") or item["page"])
            for item in part["over_retrieved"][:MAX_ITEMS]
        ]
    return lines


def _make_topic_table(topics: Sequence[Topic], words: dict[str, str]) -> Table:
    table = make_titled_table(words["topics"])
    for name in ("topic", "questions", "cohesion", "hit rate", "failure rate", "missing"):
        table.add_column(words[name], justify="left" if name == "topic" else "right")
    for topic in topics[:MAX_TOPICS]:
        rates = (topic["hit_rate"], topic["failure_rate"], topic["missing_rate"])
        table.add_row(
            clean(topic["label"]),
            str(topic["n"]),
            f"{topic['cohesion']:.2f}",
            *("—" if rate is None else f"{rate:.0%}" for rate in rates),
        )
    if len(topics) > MAX_TOPICS:
        table.add_row(words["more"].format(n=len(topics) - MAX_TOPICS))
    return table


def _list_next_topics(topics: Sequence[ContentGap], words: dict[str, str], language: str) -> list[str]:
    lines = []
    for position, topic in enumerate(topics[:MAX_NEXT], start=1):
        lines.append(f"{position}. {topic['label']}: {'; '.join(content_gap_reasons(topic, language))}")
        if topic["unserved_examples"]:
            lines.append(words["asked"].format(examples=" | ".join(topic["unserved_examples"])))
        if topic["missing_pages"]:
            lines.append(words["gone"].format(pages=", ".join(page["page"] for page in topic["missing_pages"])))
    return lines


def _list_profile(profile: LogProfile, words: dict[str, str]) -> list[str]:
    lengths = profile["lengths"]["question_characters"] or {}
    lines = [words["profile"].format(**lengths, **profile["scripts"])]
    unexplained = [item["abbreviation"] for item in profile["abbreviations"] if not item["chunks"]]
    if unexplained:
        lines.append(words["unexplained"].format(words=", ".join(unexplained)))
    if profile["growth"]["months"]:
        months = ", ".join(f"{month['month']} {month['n']}" for month in profile["growth"]["months"][-12:])
        lines.append(words["growth"].format(months=months))
    return lines
