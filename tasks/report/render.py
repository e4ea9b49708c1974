"""The pages as HTML, by Jinja2 with everything escaped that is not ours."""

import secrets
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from sqlalchemy import Engine

from yarus.tasks.cases.privacy import pseudonyms as to_people
from yarus.tasks.cases.vocabulary import STRATA
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import guidance
from yarus.tasks.evaluation.guidance import goals
from yarus.tasks.evaluation.numbers import shown, typeset
from yarus.tasks.evaluation.summary import EvaluationSummary
from yarus.tasks.report import corpus_page
from yarus.tasks.report.answers import answers_pages
from yarus.tasks.report.case_list import in_russian
from yarus.tasks.report.comparisons import LISTS, add_comparisons, changes, comparison, trends
from yarus.tasks.report.embedded_data import Document, as_script, packed_plotly
from yarus.tasks.report.entries import Entry, described
from yarus.tasks.report.experiment_pages import pages
from yarus.tasks.report.label_lessons import lessons

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = (
    *("page.js", "live.js", "tables.js", "charts.js", "cases.js", "support.js"),
    *("trace.js", "case.js", "answers.js", "route.js"),
)
SPOKEN = ("script", "live", "answers", "trace")
"""Sections of texts that the page's script speaks."""
LIST_COLUMNS = 3
"""Metrics that the list of cases shows."""


@cache
def environment() -> Environment:
    """Templates, with what all of them use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "said": said,
        "said_or": said_or,
        "both": both,
        "named": _named,
        "told": told,
        "labels": texts("metric_labels", "ru").keys(),
        "shown": shown,
        "logo": source("logo.svg"),
        "icons": {name: source(f"{name}.svg") for name in ("auto", "light", "dark", "print", "menu")},
        "css": source("tables.css") + source("page.css"),
        "more_css": Markup("").join(source(f"{name}.css") for name in ("live", "answers", "trace")),
        "theme": source("theme.js"),
        "version": version("yarus"),
    }
    return made


class Live(NamedTuple):
    """What a page says that a server has made, and may make anew."""

    now: str
    """What had changed last when it was made."""
    stays: bool = False
    """Whether it waits for its reader before it is made anew."""


def render(engine: Engine, shown_entries: list[Entry], language: str, live: Live | None = None) -> str:
    """The report over these evaluations; as a file of its own, or as a server's page."""
    add_comparisons(engine, shown_entries)
    evaluations = [described(entry) | _advised(entry) for entry in shown_entries]
    packs: dict[str, str] = {}
    figures: Document = {}
    for one, entry in zip(evaluations, shown_entries, strict=True):
        one["comparison"] = comparison(entry)
        one["charts"] = _charts(one, figures)
        one["lessons"] = lessons(engine, entry.row["id"], entry.row["source"], entry.cases)
        packs |= _packs(one)
    answers = answers_pages(shown_entries, evaluations)
    histories = trends(engine, shown_entries)
    for number, history in enumerate(histories):
        history["id"] = f"trend-{number}"
        figures[history["id"]] = history.pop("figure")
    over = pages(engine, shown_entries[0].row["source"], figures)
    packs["plotly"] = packed_plotly()
    described_corpus = corpus_page.stored(engine, shown_entries[0].row["source"])
    if described_corpus is not None:
        drawn = described_corpus.pop("figure")
        described_corpus["map"] = drawn and {"id": "map", "height": drawn["layout"]["height"]}
        figures |= {"map": drawn} if drawn else {}
    summaries = [entry.summary for entry in shown_entries if entry.key == entry.tier]
    said_changes, since = changes(shown_entries)
    titles = {
        name: f"{text} · {shown_entries[0].row['source']} · Yarus"
        for name, text in translations("report.page", "report").items()
    }
    return rendered(
        "report.html",
        language,
        live=live,
        title=titles[language],
        source=shown_entries[0].row["source"],
        made_at=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        evaluations=evaluations,
        weakest=guidance.weakest(summaries),
        lead={of: typeset(said) for of, said in guidance.lead(summaries).items()},
        changes=said_changes,
        since=since,
        advised=_in_order(evaluations, guidance.first(summaries)),
        goals=goals(summaries),
        trends=histories,
        over=over,
        answers=answers,
        corpus=described_corpus,
        pseudonyms=any(to_people.has_pseudonyms(entry.row["source"]) for entry in shown_entries)
        and translations("pseudonyms", "note"),
        packs=packs,
        script=script(SCRIPTS),
        data=as_script(
            {
                "words": {name: spoken(name) for name in LANGUAGES},
                "titles": titles,
                "figures": figures,
                "reasons": in_russian(entry.cases for entry in shown_entries),
                "answers": {one["key"]: one for one in answers},
                "cases": {one["key"]: _listed(one) for one in evaluations if one["pack"]},
            }
        ),
    )


def rendered(template: str, language: str, *, live: Live | None = None, **values: Any) -> str:
    """A page from its template, with a nonce that lets our scripts run and no other."""
    page = environment().get_template(template)
    return page.render(language=language, live=live, nonce=secrets.token_urlsafe(16), **values)


def source(name: str) -> Markup:
    """A file of ours, to be put into a page as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def script(names: tuple[str, ...]) -> Markup:
    """Scripts of ours one after another, in a scope of their own."""
    return Markup("(() => {{\n{}\n}})();").format(Markup("\n").join(source(name) for name in names))


def both(text: Text) -> Markup:
    """A text in every language; the page's style shows one."""
    if len(set(text.values())) == 1:
        return escape(text["ru"])
    return Markup("").join(
        Markup('<span lang="{}">{}</span>').format(language, text[language]) for language in LANGUAGES
    )


def told(section: str, key: str, **values: object) -> Markup:
    """A text in every language, with values put in."""
    return both(translations(section, key, **values))


def said(key: str, **values: object) -> Markup:
    """A text of the pages."""
    return told("report.page", key, **values)


def said_or(key: str, otherwise: str) -> Markup:
    """A text of the pages, or else another one as it is."""
    return said(key) if key in texts("report.page", "ru") else escape(otherwise)


def spoken(language: str) -> dict[str, str]:
    """The words that the page's script needs, in one language."""
    page = texts("report.page", language)
    words = {name: text for section in SPOKEN for name, text in texts(f"report.{section}", language).items()}
    words |= {"not found": page["not found"]}
    words |= {f"list {name}": page[name] for name in LISTS}
    words |= {f"stratum {name}": page[name] for name in STRATA}
    words |= {f"status {name}": text for name, text in texts("report.statuses", language).items()}
    words |= {f"failure {name}": text for name, text in texts("failures", language).items()}
    return words | {f"metric {name}": text for name, text in texts("metric_labels", language).items()}


def _named(key: str) -> Markup:
    """Attributes that name an element in every language; the page's script keeps the one that is read."""
    text = translations("report.page", key)
    return Markup('data-ru="{ru}" data-en="{en}" aria-label="{ru}"').format(**text)


def _advised(entry: Entry) -> Document:
    advice, kept = guidance.next_step(entry.summary)
    condition = "&".join(f"{name}={value}" for name, value in kept.items())
    if entry.cases is None or (kept.get("metric") not in (None, *entry.cases.column_names)):
        condition = ""
    return {"says": guidance.says(entry.summary), "next": advice, "filter": condition}


def _in_order(evaluations: list[Document], foremost: EvaluationSummary | None) -> list[Document]:
    """What to look at: what is named first, then the tiers that need it; those that measure or explain come last."""
    grades = {"attention": 0, "absent": 1, "weak": 1, "good": 2, "reasonable": 2}

    def urgency(one: Document) -> tuple[bool, bool, int, int]:
        worst = min((grades.get(metric["grade"], 3) for metric in one["metrics"] if metric["grade"]), default=3)
        order = TIERS[one["tier"]].felt or len(TIERS)
        return one["summary"] is not foremost, one["summary"]["state"] == "completed", worst, order

    return sorted((one for one in evaluations if one["key"] == one["tier"]), key=urgency)[:5]


def _charts(one: Document, figures: Document) -> list[Document]:
    """The charts of an evaluation, whose figures are put among those of the page."""
    made = one.pop("figures")

    def drawn(*names: str) -> list[Document]:
        return [{"metric": None, "word": name, "figure": made[name]} for name in names if made.get(name)]

    charts = drawn("showing risk", "showing cost", "ranks")
    charts += [{"word": None, **chart} for chart in made.get("distributions", [])]
    charts += drawn("latency")
    for number, chart in enumerate(charts):
        chart["id"] = f"{one['key']}-{number}"
        figures[chart["id"]] = chart.pop("figure")
        chart["height"] = figures[chart["id"]]["layout"]["height"]
    return charts


def _packs(one: Document) -> dict[str, str]:
    packs: dict[str, str] = {}
    if one["pack"]:
        packs |= {f"rows-{one['key']}": one["pack"].pop("rows"), f"details-{one['key']}": one["pack"].pop("details")}
    if one["comparison"] and one["comparison"].get("pack"):
        packs[f"pair-{one['key']}"] = one["comparison"]["pack"]
    return packs


def _listed(one: Document) -> Document:
    """What the page's script must know of a list of cases before it is opened."""
    numbers = one["pack"]["numbers"]
    first = [name.removeprefix("avg_") for name in TIERS[one["tier"]].headlines]
    first += ["mean_abs_difference", "latency_ms", "nn_distance", *numbers]
    chosen = list(dict.fromkeys(name for name in first if name in numbers))[:LIST_COLUMNS]
    return {
        "n": one["pack"]["n"],
        "numbers": numbers,
        "shown": chosen,
        "made": one["made"],
        "texts": one["case_kind"] == "texts",
    }
