"""Results for people, on stdout."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from yarus.flows.terminal.labels import corrected_lines
from yarus.flows.terminal.printing import coloured, new_console, number, plain, tier_name, titled_table
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM, MEASURED
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import named, told
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import called
from yarus.tasks.evaluation.findings.exam import exam_tables
from yarus.tasks.evaluation.findings.findings import FINDINGS
from yarus.tasks.evaluation.guidance import cases_are, first, lead, next_step, says, unsupported_facts
from yarus.tasks.evaluation.numbers import grade_text, plain_interval
from yarus.tasks.evaluation.queries import where
from yarus.tasks.evaluation.summary import (
    EvaluationSummary,
    FailedEvaluation,
    MetricSummary,
    Night,
    has_metrics,
    measured,
)


def exam_printed(summary: EvaluationSummary, language: str) -> tuple[Table, Table]:
    """Two tables: the prompts with their figures and verdicts, and the kinds of answers."""
    words, found = texts("exam", language), exam_tables(summary)
    heads = (words[name] for name in ("prompt", "auc", "caught", "passed", "verdict"))
    prompts = titled_table(words["title"], *heads)
    for row in found.prompts:
        prompts.add_row(row.prompt, row.auc, row.caught, row.passed, row.verdict[language])
    kinds = titled_table(words["kinds"], "", *(row.prompt for row in found.prompts))
    for kind in found.kinds:
        kinds.add_row(kind.name[language], *kind.hits)
    return prompts, kinds


FEW = 3
"""Names of metrics in a line on several."""
SYSTEM: tuple[str, ...] = ("sut", "retriever", "embedder_identity", "vectors", "index_recall", "generator")
SYSTEM += ("reranker_identity", "rerank_depth", "generator_prompt", "texts", "unit", "k", "similarity_embedder")


def print_summary(summary: EvaluationSummary, language: str) -> None:
    """An evaluation: its metrics with grades, what could not be measured and why, where the files are."""
    words = texts("terminal", language)
    console = new_console()
    tier, state = tier_name(summary["tier"], language), _state(summary, language)
    console.print(f"\n[bold]{tier}[/] · {plain(summary['source'])} · {state} {plain(called(summary))}".rstrip())
    if summary["cases"]:
        console.print(f"{words['case set']}: {plain(summary['cases']['name'])} · {summary['cases']['sha256'][:12]}")
    if _system(summary["system"], language):
        console.print(f"{words['system']}: {plain(_system(summary['system'], language))}", style="dim")
    if summary["metrics"]:
        for part in _strata(summary["tier"], summary.get("strata", {}), language):
            console.print(part)
        shown = {name: of for name, of in summary["metrics"].items() if not name.startswith("exam_")}
        _print_metrics(console, shown, language)
    if "exam" in summary:
        console.print(*exam_printed(summary, language))
    _print_statuses(console, summary, language)
    findings = (sentence[language] for feature in FINDINGS for sentence in feature.sentences(summary))
    for line in (*_missing(summary, language), *findings, *_readings(summary, language)):
        console.print(plain(line), soft_wrap=True)
    for note in summary["notes"]:
        console.print(plain(texts("notes", language)[note["note"]].format(**note)), soft_wrap=True)
    if summary["error"]:
        console.print(plain(told(summary["error"], language)), style="yellow")
    if summary["parquet"]:
        console.print(f"{words['key']}: {summary['comparability_key']}")
        console.print(f"{words['file']}: {plain(summary['parquet'])}", soft_wrap=True)
        console.print(_advice(summary, language), soft_wrap=True)


def _advice(summary: EvaluationSummary, language: str) -> str:
    """What to do next, and the command that shows the cases in question, where there are any."""
    advice, condition = next_step(summary)
    if not condition:
        return plain(advice[language])
    said = {"advice": advice[language], "id": summary["evaluation_id"], "where": where(condition)}
    return plain(texts("terminal", language)["read"].format(**said))


def print_overview(night: Night, language: str) -> None:
    """All tiers of a night on one page: what each is judged by."""
    words = texts("terminal", language)
    table = titled_table(words["overview"])
    for name in ("tier", "metric", "value", "interval", "measured", "grade"):
        table.add_column(words[name], no_wrap=name != "grade")
    for summary in night["evaluations"]:
        tier = tier_name(summary["tier"], language)
        if summary["state"] not in ("completed", "invalid"):
            table.add_row(tier, _state(summary, language), plain(told(summary["error"] or "", language)))
        if has_metrics(summary):
            for cells in _headline_rows(summary, language):
                table.add_row(tier, *cells)
                tier = ""
    console = new_console()
    console.print("", table)
    console.print(lead(night["evaluations"])[language], style="bold", soft_wrap=True)
    if foremost := first(measured(night)):
        advice = plain(next_step(foremost)[0][language])
        console.print(f"{texts('statements', language)['what next']}: {advice}", soft_wrap=True)


def _state(summary: EvaluationSummary | FailedEvaluation, language: str) -> str:
    return coloured(texts("states", language)[summary["state"]], summary["state"])


def _print_metrics(console: Console, metrics: Mapping[str, MetricSummary], language: str) -> None:
    if any(metric["value"] is not None for metric in metrics.values()):
        console.print(_metrics(metrics, language))
    for line in _unmeasured(metrics, language):
        console.print(f"[yellow]{plain(line)}[/]", soft_wrap=True)


def _metrics(metrics: Mapping[str, MetricSummary], language: str) -> Table:
    """A row per metric that has a value."""
    words = texts("terminal", language)
    table = Table(words["metric"], *(words[name] for name in ("value", "interval", "measured", "grade")), box=None)
    for column in table.columns[1:4]:
        column.justify = "right"
    for column in table.columns[:4]:
        column.no_wrap = True
    for name, metric in metrics.items():
        if metric["value"] is not None:
            table.add_row(*_cells(name, metric, language))
    return table


def _unmeasured(metrics: Mapping[str, MetricSummary], language: str) -> Iterator[str]:
    """A line per reason for which metrics have no value."""
    words = texts("terminal", language)
    for reason, names in _names_by_reason(metrics).items():
        some = ", ".join(names[:FEW]) + (", …" if len(names) > FEW else "")
        values = {"n": len(names), "reason": told(reason, language), "names": some}
        yield words["metric not measured" if len(names) == 1 else "metrics not measured"].format(**values)


def _names_by_reason(metrics: Mapping[str, MetricSummary]) -> dict[str, list[str]]:
    """Names of the metrics without a value, by why they have none."""
    found: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric["value"] is None:
            found.setdefault(metric["reason"] or "", []).append(name)
    return found


def _headline_rows(summary: EvaluationSummary, language: str) -> Iterator[tuple[str, ...]]:
    """What a tier is judged by: a row per metric, and one for all that have no value for the same reason."""
    headlines = {name: summary["metrics"][name] for name in TIERS[summary["tier"]].headlines}
    first_of = {names[0]: names for names in _names_by_reason(headlines).values()}
    for name, metric in headlines.items():
        if metric["value"] is not None or name in first_of:
            more = len(first_of.get(name, ())) - 1
            label, *cells = _cells(name, metric, language)
            yield (f"{label} +{more}" if more > 0 else label, *cells)


def _cells(name: str, metric: MetricSummary, language: str) -> tuple[str, ...]:
    counted = f"{metric['n_scored']} / {metric['n_total']}"
    if metric["value"] is None:
        missing = texts("terminal", language)["not measured"]
        return name, f"[yellow]{missing}[/]", "", counted, plain(told(metric["reason"] or "", language))
    named = grade_text(metric)
    grade = coloured(named[language], metric["grade"] or "") if named else ""
    return name, number(name, metric["value"]), plain_interval(metric, partial(number, name)), counted, grade


def _strata(tier: str, strata: Mapping[str, Mapping[str, MetricSummary]], language: str) -> Iterator[Table | str]:
    """The tier's headline metrics side by side, where it has strata, and which of these the others are of."""
    words, names = texts("terminal", language), texts("strata", language)
    shown = TIERS[tier].headlines
    table = Table(words["stratum"], *shown, words["measured"], box=None)
    for name, metrics in strata.items():
        values = [metrics[metric] for metric in shown]
        numbers = ("—" if metric["value"] is None else f"{metric['value']:.3f}" for metric in values)
        table.add_row(names[name], *numbers, f"{values[0]['n_scored']} / {values[0]['n_total']}")
    yield from [table] if strata else []
    if HEADLINE_STRATUM in strata:
        yield f"[bold]{words['headline'].format(stratum=names[HEADLINE_STRATUM])}[/]"


def _print_statuses(console: Console, summary: EvaluationSummary, language: str) -> None:
    words, names = texts("terminal", language), texts("statuses", language)
    unmeasured = {status: count for status, count in summary["statuses"].items() if status not in MEASURED}
    total, cases = summary["n_cases"], cases_are(summary)[language]
    if unmeasured:
        why = ", ".join(f"{names[status]} {count}" for status, count in unmeasured.items())
        console.print(f"{words['unmeasured'].format(n=sum(unmeasured.values()), total=total, cases=cases)}: {why}.")
    elif summary["statuses"]:
        console.print(words["all measured"].format(total=total, cases=cases))
    if refused := summary["statuses"].get("sut_refusal"):
        console.print(words["refused"].format(n=refused))
    if summary["coverage"] is not None:
        console.print(f"{words['coverage']}: {summary['coverage']:.1%}")


def _missing(summary: EvaluationSummary, language: str) -> Iterator[str]:
    """What the cases that failed to be measured leave possible, of the headline metrics."""
    for name in TIERS[summary["tier"]].headlines:
        metric = summary["metrics"].get(name)
        if metric and metric["bound_low"] is not None and metric["bound_high"] is not None:
            ends = {"low": number(name, metric["bound_low"]), "high": number(name, metric["bound_high"])}
            yield texts("terminal", language)["bounds"].format(metric=name, **ends)


def _readings(summary: EvaluationSummary, language: str) -> Iterator[str]:
    """What figures mean that are easily misread: a judge's agreement and biases, invented facts."""
    words, metrics = texts("terminal", language), summary["metrics"]
    yield from corrected_lines(metrics, language)
    if invented := unsupported_facts(summary):
        yield words["unsupported facts"].format(said=invented[language], id=summary["evaluation_id"])
    if summary["tier"] != "judge" or not metrics:
        return
    yield says(summary)[language]
    for name in (name for name in metrics if name.startswith("bias_")):
        value, low, high = metrics[name]["value"], metrics[name]["ci_low"], metrics[name]["ci_high"]
        if low is not None and high is not None and (low > 0 or high < 0):
            yield words["judge is moved"].format(what=texts("biases", language)[name], value=value, low=low, high=high)


def _system(said: Mapping[str, Any], language: str) -> str:
    shown = {name.removesuffix("_identity"): str(said[name]).split("|")[0] for name in SYSTEM if name in said}
    if "judge" in said:
        shown["judge"] = str(said["judge"]["model"])
    if "pool" in said:
        shown["labels"] = f"filled ({' + '.join(said['pool'])})"
    return ", ".join(f"{name} {named(value, language)}" for name, value in shown.items())
