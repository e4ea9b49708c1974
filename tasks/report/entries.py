"""What a report shows of each evaluation: its numbers, its cases, what changed, its history."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Engine, select
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.db.tables import evaluation
from yarus.metrics.table import known
from yarus.tasks.cases.privacy import pseudonyms as to_people
from yarus.tasks.cases.table import rows_of
from yarus.tasks.cases.vocabulary import MEASURED, SEVERITY
from yarus.tasks.config.texts import translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.findings import failures, showing
from yarus.tasks.evaluation.findings.exam import exam_tables
from yarus.tasks.evaluation.findings.findings import FINDINGS
from yarus.tasks.evaluation.guidance import case_kind, cases_are
from yarus.tasks.evaluation.numbers import THIN, between, grade_text, interval, rounded, shown
from yarus.tasks.evaluation.repeats import MARKS
from yarus.tasks.evaluation.summary import EvaluationSummary, MetricSummary, summary
from yarus.tasks.report import figures
from yarus.tasks.report.bars import bar
from yarus.tasks.report.case_list import LONGEST, in_languages, pack
from yarus.tasks.report.embedded_data import Document
from yarus.tasks.report.metric_hints import hint

APART = (showing, failures)
"""Findings that stand with a figure, elsewhere on the page."""
REASONS = 4
"""Most reasons shown for a status."""
MADE = ("sut", "retriever", "reranker", "generator_prompt", "answers_of")
"""What a case's trace says of how answers are made."""
STAND_IN = "no language model"
REJECTED = "contradicted"
FOOT = ("settings", "parameters", "resolved", "versions")


@dataclass
class Entry:
    """One evaluation in a report."""

    key: str
    """Its name in the addresses of the page: the tier, or the id where a tier has several."""
    row: RowMapping
    summary: EvaluationSummary
    cases: pa.Table | None = None
    problem: str | None = None
    """Why there are no cases."""
    comparison: Document = field(default_factory=dict)
    """From yarus.tasks.comparison.since, if it was compared with `parquet` and `explained`; empty: with nothing."""

    @property
    def aside(self) -> bool:
        """Whether it repeats another one or what failed in it, or judges an anchor's answers anew: nothing new of the
        system.
        """
        return bool({*MARKS} & journal.marks(self.row).keys()) or "failed_again" in self.summary

    @property
    def tier(self) -> str:
        """The tier that it evaluated."""
        return str(self.row["tier"])


def newest(engine: Engine) -> list[str]:
    """The newest evaluation of every tier, of the source of the newest of all; in the order of the tiers.

    Raises:
        InputError: there is none.
    """
    of = evaluation.c
    ended = select(of.id, of.source).where(of.state != "running", journal.LIVE)
    ended = ended.order_by(of.started_at.desc()).limit(1)
    whole = of.parameters["limit"].astext.is_(None)  # one of a few questions is no news beside all
    with engine.connect() as connection:
        last = connection.execute(ended).first()
        if last is None:
            raise InputError("there is nothing to report yet; run an evaluation first: yarus run tier1, or yarus demo")
        found = []
        for tier in TIERS:
            of_tier = ended.where(of.tier == tier, of.source == last.source)
            found += [connection.scalar(of_tier.where(whole)) or connection.scalar(of_tier)]
    return [name for name in found if name is not None]


def entries(engine: Engine, evaluation_ids: list[str]) -> list[Entry]:
    """The evaluations with their cases, in the order of the tiers, the newest of a tier first, what is aside last.

    Raises:
        InputError: no such evaluation.
    """
    rows = {row["id"]: row for row in (journal.find(engine, name) for name in evaluation_ids)}
    order: list[str] = list(TIERS)
    found = [Entry(row["id"], row, summary(engine, row["id"]), *_cases(row)) for row in rows.values()]
    found.sort(key=lambda entry: entry.row["started_at"], reverse=True)
    found.sort(key=lambda entry: (order.index(entry.tier), entry.aside))
    first = {entry.tier: entry for entry in reversed(found)}
    for tier, entry in first.items():
        entry.key = tier
    return found


def described(entry: Entry) -> Document:
    """An evaluation as the templates read it."""
    told, config, headlines = entry.summary, EvaluationConfig.of(entry.row), TIERS[entry.tier].headlines
    compared = {name: one for name, one in entry.comparison.get("metrics", {}).items() if one["difference"] is not None}
    names = [name for name in dict.fromkeys((*headlines, *told["metrics"])) if name in told["metrics"]]
    return {
        "key": entry.key,
        "id": entry.row["id"],
        "tier": entry.tier,
        "called": {"name": told["name"], "tags": told["tags"]},
        "summary": told,
        "cases_are": {of: name.capitalize() for of, name in cases_are(told).items()},
        "case_kind": case_kind(told),
        "started": f"{entry.row['started_at']:%Y-%m-%d %H:%M} UTC",
        "seconds": _seconds(entry.row),
        "metrics": [
            _metric(name, told["metrics"][name], compared.get(name), is_headline=place < len(headlines))
            for place, name in enumerate(names)
        ],
        "strata": _strata(told.get("strata", {}), headlines),
        "statuses": _statuses(told["statuses"], entry.cases),
        "stages": _stages(told),
        "exam": exam_tables(told) if "exam" in told else None,
        "mistakes": list(_mistakes(entry)),
        "findings": [said for feature in FINDINGS if feature not in APART for said in feature.sentences(told)],
        "price": list(showing.sentences(told)),
        "problem": entry.problem,
        "stand_ins": stand_ins(entry.row),
        "made": {name: getattr(config, name) for name in MADE},
        "cost": {name: entry.row[name] for name in ("tokens_in", "tokens_out", "cost_usd")},
        "figures": _figures(entry),
        "pack": pack(entry.cases) if entry.cases is not None else None,
        "foot": _foot(entry.row),
    }


def stand_ins(row: RowMapping) -> bool:
    """Whether an offline stand-in answered or judged in a language model's place."""
    config = EvaluationConfig.of(row)
    return STAND_IN in json.dumps([config.generator, config.judge])


def _cases(row: RowMapping) -> tuple[pa.Table | None, str | None]:
    if row["parquet"] is None:
        return None, to_people.text(row["error"] or str(row["state"]), row["source"])
    try:
        return to_people.cases(result_files.read(row["parquet"]), row["source"]), None
    except (ResultsUnavailable, InputError) as error:
        return None, str(error)[:LONGEST]


def _metric(name: str, metric: MetricSummary, compared: Document | None, *, is_headline: bool) -> Document:
    declared = known(name)
    bounds = declared.thresholds if declared else None
    return {
        "name": name,
        "value": metric["value"],
        "text": shown(name, metric["value"]),
        "interval": interval(name, metric),
        "bar": bar(name, metric),
        "n_scored": metric["n_scored"],
        "n_total": metric["n_total"],
        "bounds_missing": _bounds(name, metric),
        "reason": in_languages(metric["reason"] or "—"),
        "grade": metric["grade"],
        "grade_text": grade_text(metric),
        "bounds": [f"{bound:g}" for bound in bounds] if bounds else [],
        "low": f"{declared.low:g}" if declared else None,
        "high": f"{declared.high:g}" if declared and declared.high != float("inf") else None,
        "better": declared.better if declared else "neither",
        "hint": hint(name),
        "change": compared
        and {**compared, "text": shown(name, compared["difference"], sign=True), "between": between(name, compared)},
        "headline": is_headline,
        "main": is_headline or bool(metric["grade"]) or (compared or {}).get("verdict") in ("regressed", "changed"),
    }


def _bounds(name: str, metric: MetricSummary) -> str | None:
    """What the cases that failed to be measured leave possible."""
    low, high = metric["bound_low"], metric["bound_high"]
    return None if low is None or high is None else f"{shown(name, low)}\N{EN DASH}{shown(name, high)}"


def _strata(strata: Mapping[str, Mapping[str, MetricSummary]], headline: tuple[str, ...]) -> list[Document]:
    names = [name for name in headline if all(name in metrics for metrics in strata.values())]
    return [
        {
            "stratum": stratum,
            "values": [
                {"text": shown(name, metrics[name]["value"]), "bar": _bar_of(stratum, name, metrics[name])}
                for name in names
            ],
            "n_scored": metrics[names[0]]["n_scored"],
            "n_total": metrics[names[0]]["n_total"],
        }
        for stratum, metrics in strata.items()
        if names
    ]


def _bar_of(stratum: str, name: str, metric: MetricSummary) -> Document | None:
    """Of answers that users have rejected more is not better: their bar has no grades."""
    found = bar(name, metric)
    if found and stratum == REJECTED:
        found["zones"] = [zone | {"grade": ""} for zone in found["zones"]]
    return found


def _statuses(counts: dict[str, int], cases: pa.Table | None) -> list[Document]:
    """How many cases have which status, measured ones first, each with its most frequent reasons."""
    total = sum(counts.values())
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    if cases is not None and "reason" in cases.column_names:
        for status, reason in rows_of(cases, "status", "reason"):
            if reason:
                reasons[status][reason] += 1
    return [
        {
            "status": status,
            "n": counts[status],
            "share": round(100 * counts[status] / total, 2),
            "measured": status in MEASURED,
            "reasons": [(in_languages(why), n) for why, n in reasons[status].most_common(REASONS)],
        }
        for status in reversed(SEVERITY)
        if counts.get(status)
    ]


def _mistakes(entry: Entry) -> Iterator[Document]:
    """The answers of the exam that the judge scored farthest from what they deserve, with their texts."""
    exam = entry.summary.get("exam", {})
    wanted = {mistake["case_id"] for of in exam.values() for mistake in of["worst"]}
    if not wanted or entry.cases is None:
        return
    kept = entry.cases.filter(pc.is_in(entry.cases["case_id"], value_set=pa.array(sorted(wanted), pa.string())))
    cases = {case["case_id"]: case for case in kept.select(["case_id", "question", "exam"]).to_pylist()}
    for prompt, of in exam.items():
        for mistake in of["worst"]:
            case = cases.get(mistake["case_id"], {"question": "", "exam": []})
            answer = next((item["answer"] for item in case["exam"] or () if item["kind"] == mistake["kind"]), "")
            told = {"prompt": prompt, "kind": translations("exam_kinds", mistake["kind"]), "score": mistake["score"]}
            yield {**told, "question": case["question"], "answer": answer}


def _stages(told: EvaluationSummary) -> list[Document]:
    known = told["failures"]["counts"] if "failures" in told else {}
    counts = {name: n for name, n in known.items() if n}
    most = max(counts.values(), default=0)
    return [
        {"stage": name, "n": n, "share": round(100 * n / most, 2)}
        for name, n in sorted(counts.items(), key=lambda item: -item[1])
    ]


def _figures(entry: Entry) -> Document:
    if entry.cases is None:
        return {}
    return {
        "distributions": figures.distributions(entry.tier, entry.cases),
        "ranks": figures.ranks(entry.cases),
        "latency": figures.latency(entry.cases),
        **(figures.showing(entry.summary["showing"]) if "showing" in entry.summary else {}),
    }


def _seconds(row: RowMapping) -> str | None:
    if row["finished_at"] is None:
        return None
    return rounded((row["finished_at"] - row["started_at"]).total_seconds(), "count", ",").replace(",", THIN)


def _foot(row: RowMapping) -> Document:
    """Everything that says how the numbers came about; the settings are stored without secrets."""
    documents = {name: json.dumps(row[name] or {}, ensure_ascii=False, indent=2, default=str) for name in FOOT}
    kept = ("comparability_key", "case_set_hash", "git_commit", "git_dirty", "flow_run_id", "parquet", "sut_label")
    return {**{name: row[name] for name in kept}, "documents": documents}
