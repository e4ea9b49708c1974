"""HTML pages by Jinja2 with autoescaping."""

import secrets
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from sqlalchemy import Engine

from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.vocabulary import USER_STRATA
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import guidance
from yarus.tasks.evaluation.guidance import list_goals
from yarus.tasks.evaluation.number_format import format_metric, use_minus_sign
from yarus.tasks.evaluation.summary import EvaluationSummary
from yarus.tasks.report import corpus_page
from yarus.tasks.report.answers import build_answers_pages
from yarus.tasks.report.case_list import translate_reasons
from yarus.tasks.report.comparisons import (
    CHANGE_LISTS,
    add_comparisons,
    build_trends,
    comparison_view,
    describe_changes,
)
from yarus.tasks.report.embedded_data import Document, pack_plotly, to_script_json
from yarus.tasks.report.entries import ReportEntry, entry_view
from yarus.tasks.report.experiment_pages import experiment_pages
from yarus.tasks.report.label_lessons import label_analysis

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = (
    *("page.js", "live.js", "tables.js", "charts.js", "cases.js", "support.js"),
    *("trace.js", "case.js", "answers.js", "route.js"),
)
SCRIPT_SECTIONS = ("script", "live", "answers", "trace")
"""Sections of texts for the page's script."""
LIST_COLUMNS = 3
"""Number of metrics in the list of cases."""


@cache
def jinja_environment() -> Environment:
    """Return the Jinja environment with the globals of all templates."""
    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.globals |= {
        "said": page_text,
        "said_or": page_text_or,
        "both": in_all_languages,
        "named": _name_attributes,
        "told": translate,
        "labels": texts("metric_labels", "ru").keys(),
        "shown": format_metric,
        "logo": read_template_file("logo.svg"),
        "icons": {name: read_template_file(f"{name}.svg") for name in ("auto", "light", "dark", "print", "menu")},
        "css": read_template_file("tables.css") + read_template_file("page.css"),
        "more_css": Markup("").join(read_template_file(f"{name}.css") for name in ("live", "answers", "trace")),
        "theme": read_template_file("theme.js"),
        "version": version("yarus"),
    }
    return jinja


class LivePageState(NamedTuple):
    """State of a page that a server renders."""

    now: str
    """Change token of the pages (`LivePages.now`) when the page was rendered."""
    stays: bool = False
    """Whether the reader must confirm before the page is reloaded."""


def render_report(
    engine: Engine, shown_entries: list[ReportEntry], language: str, live: LivePageState | None = None
) -> str:
    """Return the report over these evaluations, as a file or as a server's page."""
    add_comparisons(engine, shown_entries)
    evaluations = [entry_view(entry) | _advice_view(entry) for entry in shown_entries]
    packs: dict[str, str] = {}
    figures: Document = {}
    for view, entry in zip(evaluations, shown_entries, strict=True):
        view["comparison"] = comparison_view(entry)
        view["charts"] = _chart_views(view, figures)
        view["lessons"] = label_analysis(engine, entry.row["id"], entry.row["source"], entry.cases)
        packs |= _compress_parts(view)
    answers = build_answers_pages(shown_entries, evaluations)
    histories = build_trends(engine, shown_entries)
    for index, history in enumerate(histories):
        history["id"] = f"trend-{index}"
        figures[history["id"]] = history.pop("figure")
    experiments = experiment_pages(engine, shown_entries[0].row["source"], figures)
    packs["plotly"] = pack_plotly()
    corpus = corpus_page.corpus_view(engine, shown_entries[0].row["source"])
    if corpus is not None:
        map_figure = corpus.pop("figure")
        corpus["map"] = map_figure and {"id": "map", "height": map_figure["layout"]["height"]}
        figures |= {"map": map_figure} if map_figure else {}
    summaries = _newest_summaries(shown_entries)
    statements, since = describe_changes(shown_entries)
    titles = {
        name: f"{text} · {shown_entries[0].row['source']} · Yarus"
        for name, text in translations("report.page", "report").items()
    }
    return render_template(
        "report.html",
        language,
        live=live,
        title=titles[language],
        source=shown_entries[0].row["source"],
        made_at=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        evaluations=evaluations,
        weakest=guidance.find_weakest_tier(summaries),
        lead=compose_lead(shown_entries),
        changes=statements,
        since=since,
        advised=_order_by_urgency(evaluations, guidance.choose_first_evaluation(summaries)),
        goals=list_goals(summaries),
        trends=histories,
        over=experiments,
        answers=answers,
        corpus=corpus,
        pseudonyms=any(pseudonyms.should_mask(entry.row["source"]) for entry in shown_entries)
        and translations("pseudonyms", "note"),
        packs=packs,
        script=join_scripts(SCRIPTS),
        data=to_script_json(
            {
                "words": {name: script_texts(name) for name in LANGUAGES},
                "titles": titles,
                "figures": figures,
                "reasons": translate_reasons(entry.cases for entry in shown_entries),
                "answers": {page["key"]: page for page in answers},
                "cases": {view["key"]: _case_list_settings(view) for view in evaluations if view["pack"]},
            }
        ),
    )


def compose_lead(shown_entries: list[ReportEntry]) -> TranslatedText:
    """Return the first sentence of a report; of each tier, only the newest evaluation counts."""
    lead = guidance.lead_sentence(_newest_summaries(shown_entries))
    return {language: use_minus_sign(sentence) for language, sentence in lead.items()}


def render_template(template: str, language: str, *, live: LivePageState | None = None, **values: Any) -> str:
    """Return a page from its template, with a nonce that allows only the page's own scripts."""
    page = jinja_environment().get_template(template)
    return page.render(language=language, live=live, nonce=secrets.token_urlsafe(16), **values)


def read_template_file(name: str) -> Markup:
    """Return a template file unescaped."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def join_scripts(names: tuple[str, ...]) -> Markup:
    """Return the scripts joined in one scope."""
    return Markup("(() => {{\n{}\n}})();").format(Markup("\n").join(read_template_file(name) for name in names))


def in_all_languages(text: TranslatedText) -> Markup:
    """Return a text in every language; the page's style shows one."""
    if len(set(text.values())) == 1:
        return escape(text["ru"])
    return Markup("").join(
        Markup('<span lang="{}">{}</span>').format(language, text[language]) for language in LANGUAGES
    )


def translate(section: str, key: str, **values: object) -> Markup:
    """Return a text in every language with its values."""
    return in_all_languages(translations(section, key, **values))


def page_text(key: str, **values: object) -> Markup:
    """Return a text of the pages."""
    return translate("report.page", key, **values)


def page_text_or(key: str, default: str) -> Markup:
    """Return a text of the pages, or else the default."""
    return page_text(key) if key in texts("report.page", "ru") else escape(default)


def script_texts(language: str) -> dict[str, str]:
    """Return the texts of the page's script in one language."""
    page = texts("report.page", language)
    words = {name: text for section in SCRIPT_SECTIONS for name, text in texts(f"report.{section}", language).items()}
    words |= {"not found": page["not found"]}
    words |= {f"list {name}": page[name] for name in CHANGE_LISTS}
    words |= {f"stratum {name}": page[name] for name in USER_STRATA}
    words |= {f"status {name}": text for name, text in texts("report.statuses", language).items()}
    words |= {f"failure {name}": text for name, text in texts("failures", language).items()}
    return words | {f"metric {name}": text for name, text in texts("metric_labels", language).items()}


def _newest_summaries(shown_entries: list[ReportEntry]) -> list[EvaluationSummary]:
    return [entry.summary for entry in shown_entries if entry.key == entry.tier]


def _name_attributes(key: str) -> Markup:
    """Return attributes that name an element in every language; the page's script selects one."""
    text = translations("report.page", key)
    return Markup('data-ru="{ru}" data-en="{en}" aria-label="{ru}"').format(**text)


def _advice_view(entry: ReportEntry) -> Document:
    advice, filters = guidance.advise_next_step(entry.summary)
    condition = "&".join(f"{name}={value}" for name, value in filters.items())
    if entry.cases is None or (filters.get("metric") not in (None, *entry.cases.column_names)):
        condition = ""
    return {"says": guidance.summary_sentence(entry.summary), "next": advice, "filter": condition}


def _order_by_urgency(evaluations: list[Document], foremost: EvaluationSummary | None) -> list[Document]:
    """Return at most five evaluations to inspect: the foremost, then tiers with problems, diagnostic ones last."""
    grades = {"attention": 0, "absent": 1, "weak": 1, "good": 2, "reasonable": 2}

    def urgency(view: Document) -> tuple[bool, bool, int, tuple[bool, int]]:
        worst_grade = min((grades.get(metric["grade"], 3) for metric in view["metrics"] if metric["grade"]), default=3)
        is_completed = view["summary"]["state"] == "completed"
        return view["summary"] is not foremost, is_completed, worst_grade, guidance.tier_rank(view["tier"])

    return sorted((view for view in evaluations if view["key"] == view["tier"]), key=urgency)[:5]


def _chart_views(view: Document, figures: Document) -> list[Document]:
    """Return the charts of an evaluation, and add their figures to those of the page."""
    own_figures = view.pop("figures")

    def named_charts(*names: str) -> list[Document]:
        return [{"metric": None, "word": name, "figure": own_figures[name]} for name in names if own_figures.get(name)]

    charts = named_charts("showing risk", "showing cost", "ranks")
    charts += [{"word": None, **chart} for chart in own_figures.get("distributions", [])]
    charts += named_charts("latency")
    for index, chart in enumerate(charts):
        chart["id"] = f"{view['key']}-{index}"
        figures[chart["id"]] = chart.pop("figure")
        chart["height"] = figures[chart["id"]]["layout"]["height"]
    return charts


def _compress_parts(view: Document) -> dict[str, str]:
    packs: dict[str, str] = {}
    if view["pack"]:
        packs |= {
            f"rows-{view['key']}": view["pack"].pop("rows"),
            f"details-{view['key']}": view["pack"].pop("details"),
        }
    if view["comparison"] and view["comparison"].get("pack"):
        packs[f"pair-{view['key']}"] = view["comparison"]["pack"]
    return packs


def _case_list_settings(view: Document) -> Document:
    """Return the settings of a case list that the page's script needs before opening it."""
    numbers = view["pack"]["numbers"]
    preferred = [name.removeprefix("avg_") for name in TIERS[view["tier"]].headlines]
    preferred += ["mean_abs_difference", "latency_ms", "nn_distance", *numbers]
    shown_metrics = list(dict.fromkeys(name for name in preferred if name in numbers))[:LIST_COLUMNS]
    return {
        "n": view["pack"]["n"],
        "numbers": numbers,
        "shown": shown_metrics,
        "made": view["made"],
        "texts": view["case_kind"] == "texts",
    }
