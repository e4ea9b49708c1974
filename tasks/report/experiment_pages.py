"""Report pages over several evaluations: the newest sweep and the newest robustness probes."""

from typing import Any

from sqlalchemy import Engine

from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.comparison.experiments.experiments_schema import list_probes, list_sweeps
from yarus.tasks.comparison.experiments.robustness import RATES
from yarus.tasks.comparison.experiments.sweep_table import (
    SIGNIFICANT_VERDICTS,
    format_difference,
    format_figure,
    format_interval,
    front_trace,
    is_across_sources,
    numbered_name,
)
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.evaluation.number_format import use_minus_sign
from yarus.tasks.report.embedded_data import Document
from yarus.tasks.report.figures import plotly_figure

CHART_HEIGHT = 380


def experiment_pages(engine: Engine, source: str, figures: Document) -> list[Document]:
    """Return one page per stored experiment of the source; add their figures to those of the report.

    Returns:
        Views with key, title, question and blocks of heading, lines, head, rows and charts.
    """
    page_views = []
    for key, load, build in (("sweep", list_sweeps, _sweep_blocks), ("robustness", list_probes, _robustness_blocks)):
        documents = [document for document in load(engine, source=source, limit=5) if document.get("metrics")]
        if documents:
            page = {"key": key, "title": _translate(key), "question": _translate(f"{key} question")}
            page_views.append(page | {"blocks": build(pseudonyms.mask_document(documents[0], source), figures)})
    return page_views


def _translate(key: str, **values: object) -> TranslatedText:
    if key in texts("report.experiments", "en"):
        return translations("report.experiments", key, **values)
    return translations("sweep", key, **values)  # the same text as in the terminal


def _build_block(heading: TranslatedText | None = None, **parts: Any) -> Document:
    empty: Document = {"lines": [], "head": [], "rows": [], "charts": []}
    return {"heading": heading} | empty | parts


def _line(text: Any, *, problem: bool = False) -> Document:
    return {"text": text if isinstance(text, dict) else _untranslated(text), "problem": problem}


def _untranslated(text: str) -> TranslatedText:
    return dict.fromkeys(LANGUAGES, text)


def _sweep_blocks(document: Document, figures: Document) -> list[Document]:
    arms, quality = document["variants"], document["metrics"][0]
    charts = []
    for key, axis in (("quality by cost", "cost_usd"), ("quality by latency", "latency_ms_p50")):
        trace = front_trace(arms, axis, quality)
        if any(trace["x"]):
            figures[f"sweep-{axis}"] = plotly_figure([trace], height=CHART_HEIGHT, xaxis={"rangemode": "tozero"})
            charts.append({"id": f"sweep-{axis}", "height": CHART_HEIGHT, "caption": _translate(key, metric=quality)})
    head = [
        _translate("arm"),
        *map(_untranslated, document["metrics"]),
        *map(_untranslated, ("USD / 1000", "p50, ms", "p95, ms")),
        _translate("front"),
    ]
    rows = [
        [
            _untranslated(numbered_name(number, arm["variant_name"])),
            *(use_minus_sign(format_interval(arm["metrics"].get(name))) for name in document["metrics"]),
            *(format_figure(arm[name]) for name in ("cost_usd", "latency_ms_p50", "latency_ms_p95")),
            "*" if arm["pareto"] else "",
        ]
        for number, arm in enumerate(arms, start=1)
    ]
    notes = [_line(_translate("legend")), *([_line(_translate("sources"))] if is_across_sources(document) else [])]
    errors = [
        _line(f"{row['variant_name']}: {row['error']}", problem=True)
        for row in (*arms, *document["judges"])
        if row["error"]
    ]
    pairs = [
        [
            _untranslated(f"{pair['b']} − {pair['a']}"),
            pair["metric"],
            use_minus_sign(format_difference(pair)),
            f"{pair['p_holm']:.3f}",
        ]
        for pair in document["pairs"]
        if pair["verdict"] in SIGNIFICANT_VERDICTS
    ]
    judges = document["judges"]
    names = list(judges[0]["metrics"]) if judges else []
    judge_rows = [
        [
            _untranslated(row["judge_model"] or ""),
            *(use_minus_sign(format_interval(row["metrics"].get(name))) for name in names),
        ]
        for row in judges
    ]
    return [
        _build_block(lines=[*notes, *errors], head=head, rows=rows, charts=charts),
        _build_block(
            _translate("pairs"),
            lines=[] if pairs else [_line(_translate("none shown"))],
            head=[_translate(name) for name in ("pair", "metric", "difference", "p")],
            rows=pairs,
        ),
        *(
            [
                _build_block(
                    _translate("judges"), head=[_translate("judge"), *map(_untranslated, names)], rows=judge_rows
                )
            ]
            if judges
            else []
        ),
    ]


def _robustness_blocks(document: Document, figures: Document) -> list[Document]:
    blocks = []
    for tier in sorted(document["tiers"]):
        names = document["metrics"][tier]
        probes_by_kind = document["tiers"][tier]  # stored documents have no order
        kinds = {kind: probes_by_kind[kind] for kind in document["parameters"]["kinds"] if kind in probes_by_kind}
        same_key = "same first" if tier == "tier1" else "same answer"
        rows = [
            [
                _translate(kind),
                f"{probe['n_changed']} / {probe['n']}" if probe["n"] else "—",
                format_interval(probe["unchanged_share"]),
                *(use_minus_sign(format_difference(probe["metrics"].get(name))) for name in names),
            ]
            for kind, probe in kinds.items()
        ]
        kind_key = "kind of context" if tier == "tier2" else "kind"
        head = [_translate(kind_key), _translate("changed"), _translate(same_key), *map(_untranslated, names)]
        problems = [
            _line(_translate("no model")) if probe["state"] == "not_applicable" else _line(probe["error"], problem=True)
            for probe in kinds.values()
            if probe["error"]
        ]
        heading = translations(f"tiers.{tier}", "short")
        blocks.append(_build_block(heading, lines=[_line(_translate("star")), *problems], head=head, rows=rows))
        blocks += _rate_blocks(kind_key, kinds)
    return blocks + _position_blocks(document)


def _rate_blocks(kind_key: str, kinds: Document) -> list[Document]:
    """Return the rates that measure answers from bad contexts, in addition to the differences."""
    rows = [
        [
            _join(_translate(kind), ": ", _translate(name)),
            format_interval(rate),
            f"{rate['n_scored']} / {rate['n_total']}",
        ]
        for kind, probe in kinds.items()
        for name in RATES.get(kind, ())  # stored documents have no order
        if (rate := probe.get("rates", {}).get(name))
    ]
    head = [_join(_translate(kind_key), ": ", _translate("shows")), _translate("share"), _translate("of")]
    return [_build_block(_translate("rates"), head=head, rows=rows)] if rows else []


def _position_blocks(document: Document) -> list[Document]:
    """Return the differences between positions of the right passages among the same distractors."""
    names = document["metrics"].get("tier2", [])
    pairs = {(pair["a"], pair["b"], pair["metric"]): pair for pair in document.get("position_differences", ())}
    rows = [
        [
            _join(_translate(b), " − ", _translate(a)),
            *(use_minus_sign(format_difference(pairs.get((a, b, name)))) for name in names),
        ]
        for a, b in dict.fromkeys(key[:2] for key in pairs)
    ]
    head = [_translate("places"), *map(_untranslated, names)]
    return (
        [_build_block(_translate("lost in the middle"), lines=[_line(_translate("star"))], head=head, rows=rows)]
        if rows
        else []
    )


def _join(first: TranslatedText, separator: str, second: TranslatedText) -> TranslatedText:
    return {language: f"{first[language]}{separator}{second[language]}" for language in LANGUAGES}
