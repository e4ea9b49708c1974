"""The report's pages over several evaluations: the newest sweep, the newest robustness probes."""

from typing import Any

from sqlalchemy import Engine

from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.comparison.experiments.experiments_schema import probes, sweeps
from yarus.tasks.comparison.experiments.robustness import RATES
from yarus.tasks.comparison.experiments.sweep_table import (
    SHOWN,
    across_sources,
    difference,
    figure_of,
    front,
    interval,
    numbered,
)
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.evaluation.numbers import typeset
from yarus.tasks.report.embedded_data import Document
from yarus.tasks.report.figures import framed

HEIGHT = 380


def pages(engine: Engine, source: str, figures: Document) -> list[Document]:
    """What was stored of the source, a page each; their figures are put among those of the report.

    Returns:
        Documents of key, title, question and blocks: heading, lines, head, rows, charts.
    """
    found = []
    for key, newest, blocks in (("sweep", sweeps, _sweep), ("robustness", probes, _robustness)):
        documents = [document for document in newest(engine, source=source, limit=5) if document.get("metrics")]
        if documents:
            page = {"key": key, "title": _words(key), "question": _words(f"{key} question")}
            found.append(page | {"blocks": blocks(pseudonyms.document(documents[0], source), figures)})
    return found


def _words(key: str, **values: object) -> Text:
    if key in texts("report.experiments", "en"):
        return translations("report.experiments", key, **values)
    return translations("sweep", key, **values)  # as the terminal words it


def _block(heading: Text | None = None, **parts: Any) -> Document:
    empty: Document = {"lines": [], "head": [], "rows": [], "charts": []}
    return {"heading": heading} | empty | parts


def _line(text: Any, *, problem: bool = False) -> Document:
    return {"text": text if isinstance(text, dict) else _plain(text), "problem": problem}


def _plain(text: str) -> Text:
    return dict.fromkeys(LANGUAGES, text)


def _sweep(found: Document, figures: Document) -> list[Document]:
    arms, quality = found["arms"], found["metrics"][0]
    charts = []
    for key, axis in (("quality by cost", "cost_usd"), ("quality by latency", "latency_ms_p50")):
        trace = front(arms, axis, quality)
        if any(trace["x"]):
            figures[f"sweep-{axis}"] = framed([trace], height=HEIGHT, xaxis={"rangemode": "tozero"})
            charts.append({"id": f"sweep-{axis}", "height": HEIGHT, "caption": _words(key, metric=quality)})
    head = [
        _words("arm"),
        *map(_plain, found["metrics"]),
        *map(_plain, ("USD / 1000", "p50, ms", "p95, ms")),
        _words("front"),
    ]
    rows = [
        [
            _plain(numbered(number, arm["arm"])),
            *(typeset(interval(arm["metrics"].get(name))) for name in found["metrics"]),
            *(figure_of(arm[name]) for name in ("cost_usd", "latency_ms_p50", "latency_ms_p95")),
            "*" if arm["pareto"] else "",
        ]
        for number, arm in enumerate(arms, start=1)
    ]
    about = [_line(_words("legend")), *([_line(_words("sources"))] if across_sources(found) else [])]
    failed = [
        _line(f"{said['arm']}: {said['error']}", problem=True) for said in (*arms, *found["judges"]) if said["error"]
    ]
    pairs = [
        [_plain(f"{pair['b']} − {pair['a']}"), pair["metric"], typeset(difference(pair)), f"{pair['p_holm']:.3f}"]
        for pair in found["pairs"]
        if pair["verdict"] in SHOWN
    ]
    judges = found["judges"]
    named = list(judges[0]["metrics"]) if judges else []
    measured = [
        [_plain(said["judge_model"] or ""), *(typeset(interval(said["metrics"].get(name))) for name in named)]
        for said in judges
    ]
    return [
        _block(lines=[*about, *failed], head=head, rows=rows, charts=charts),
        _block(
            _words("pairs"),
            lines=[] if pairs else [_line(_words("none shown"))],
            head=[_words(name) for name in ("pair", "metric", "difference", "p")],
            rows=pairs,
        ),
        *([_block(_words("judges"), head=[_words("judge"), *map(_plain, named)], rows=measured)] if judges else []),
    ]


def _robustness(found: Document, figures: Document) -> list[Document]:
    blocks = []
    for tier in sorted(found["tiers"]):
        names = found["metrics"][tier]
        known = found["tiers"][tier]  # a database has no order
        kinds = {kind: known[kind] for kind in found["parameters"]["kinds"] if kind in known}
        same = "same first" if tier == "tier1" else "same answer"
        rows = [
            [
                _words(kind),
                f"{said['n_changed']} / {said['n']}" if said["n"] else "—",
                interval(said["same"]),
                *(typeset(difference(said["metrics"].get(name))) for name in names),
            ]
            for kind, said in kinds.items()
        ]
        of = "kind of context" if tier == "tier2" else "kind"
        head = [_words(of), _words("changed"), _words(same), *map(_plain, names)]
        untold = [
            _line(_words("no model")) if said["state"] == "not_applicable" else _line(said["error"], problem=True)
            for said in kinds.values()
            if said["error"]
        ]
        heading = translations(f"tiers.{tier}", "short")
        blocks.append(_block(heading, lines=[_line(_words("star")), *untold], head=head, rows=rows))
        blocks += _rates(of, kinds)
    return blocks + _places(found)


def _rates(of: str, kinds: Document) -> list[Document]:
    """What answers from bad contexts are measured by beside the differences."""
    rows = [
        [_joined(_words(kind), ": ", _words(name)), interval(rate), f"{rate['n_scored']} / {rate['n_total']}"]
        for kind, said in kinds.items()
        for name in RATES.get(kind, ())  # a database has no order
        if (rate := said.get("rates", {}).get(name))
    ]
    head = [_joined(_words(of), ": ", _words("shows")), _words("share"), _words("of")]
    return [_block(_words("rates"), head=head, rows=rows)] if rows else []


def _places(found: Document) -> list[Document]:
    """The right passages in one place less those in another, among the same distractors."""
    names = found["metrics"].get("tier2", [])
    pairs = {(pair["a"], pair["b"], pair["metric"]): pair for pair in found.get("places", ())}
    rows = [
        [
            _joined(_words(b), " − ", _words(a)),
            *(typeset(difference(pairs.get((a, b, name)))) for name in names),
        ]
        for a, b in dict.fromkeys(key[:2] for key in pairs)
    ]
    head = [_words("places"), *map(_plain, names)]
    return [_block(_words("lost in the middle"), lines=[_line(_words("star"))], head=head, rows=rows)] if rows else []


def _joined(one: Text, between: str, other: Text) -> Text:
    return {language: f"{one[language]}{between}{other[language]}" for language in LANGUAGES}
