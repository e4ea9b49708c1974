"""Print the results of evaluations for people, on stdout."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from yarus.flows.terminal.labels import list_correction_lines
from yarus.flows.terminal.printing import (
    add_colour,
    clean,
    format_metric,
    get_tier_name,
    make_console,
    make_titled_table,
)
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM, MEASURED_STATUSES
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told, translate_value
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import format_label
from yarus.tasks.evaluation.findings.exam import exam_tables
from yarus.tasks.evaluation.findings.findings import FINDINGS
from yarus.tasks.evaluation.guidance import (
    advise_next_step,
    case_names,
    choose_first_evaluation,
    lead_sentence,
    summary_sentence,
    unsupported_facts_sentence,
)
from yarus.tasks.evaluation.number_format import format_grade, format_plain_interval
from yarus.tasks.evaluation.queries import format_condition
from yarus.tasks.evaluation.summary import (
    EvaluationSummary,
    FailedEvaluation,
    MetricSummary,
    NightDocument,
    evaluations_with_metrics,
    has_metrics,
)


def make_exam_tables(summary: EvaluationSummary, language: str) -> tuple[Table, Table]:
    """Return two tables: the prompts with their figures and verdicts, and the kinds of answers."""
    words, tables = texts("exam", language), exam_tables(summary)
    heads = (words[name] for name in ("prompt", "auc", "caught", "passed", "verdict"))
    prompts = make_titled_table(words["title"], *heads)
    for row in tables.prompts:
        prompts.add_row(row.prompt, row.auc, row.caught, row.passed, row.verdict[language])
    kinds = make_titled_table(words["kinds"], "", *(row.prompt for row in tables.prompts))
    for kind in tables.kinds:
        kinds.add_row(kind.name[language], *kind.hits)
    return prompts, kinds


MAX_NAMES = 3
"""Maximum number of names of metrics in a line about several."""
SYSTEM_PARTS: tuple[str, ...] = ("sut", "retriever", "embedder_identity", "vectors", "index_recall", "generator")
SYSTEM_PARTS += ("reranker_identity", "rerank_depth", "generator_prompt", "texts", "unit", "k", "similarity_embedder")


def print_summary(summary: EvaluationSummary, language: str) -> None:
    """Print an evaluation: its metrics with grades, what could not be measured and why, where the files are."""
    words = texts("terminal", language)
    console = make_console()
    tier, state = get_tier_name(summary["tier"], language), _format_state(summary, language)
    console.print(f"\n[bold]{tier}[/] · {clean(summary['source'])} · {state} {clean(format_label(summary))}".rstrip())
    if summary["cases"]:
        console.print(f"{words['case set']}: {clean(summary['cases']['name'])} · {summary['cases']['sha256'][:12]}")
    if _describe_system(summary["system"], language):
        console.print(f"{words['system']}: {clean(_describe_system(summary['system'], language))}", style="dim")
    if summary["metrics"]:
        for part in _list_strata(summary["tier"], summary.get("strata", {}), language):
            console.print(part)
        metrics = {name: metric for name, metric in summary["metrics"].items() if not name.startswith("exam_")}
        _print_metrics(console, metrics, language)
    if "exam" in summary:
        console.print(*make_exam_tables(summary, language))
    _print_statuses(console, summary, language)
    findings = (sentence[language] for feature in FINDINGS for sentence in feature.sentences(summary))
    for line in (*_list_bounds(summary, language), *findings, *_list_interpretations(summary, language)):
        console.print(clean(line), soft_wrap=True)
    for note in summary["notes"]:
        console.print(clean(texts("notes", language)[note["note"]].format(**note)), soft_wrap=True)
    if summary["error"]:
        console.print(clean(told(summary["error"], language)), style="yellow")
    if summary["parquet"]:
        console.print(f"{words['key']}: {summary['comparability_key']}")
        console.print(f"{words['file']}: {clean(summary['parquet'])}", soft_wrap=True)
        console.print(_format_advice(summary, language), soft_wrap=True)


def _format_advice(summary: EvaluationSummary, language: str) -> str:
    """Return what to do next, and the command that shows the cases in question, if there are any."""
    advice, condition = advise_next_step(summary)
    if not condition:
        return clean(advice[language])
    values = {"advice": advice[language], "id": summary["evaluation_id"], "where": format_condition(condition)}
    return clean(texts("terminal", language)["read"].format(**values))


def print_overview(night: NightDocument, language: str) -> None:
    """Print the headline metrics of all tiers of a nightly run."""
    words = texts("terminal", language)
    table = make_titled_table(words["overview"])
    for name in ("tier", "metric", "value", "interval", "measured", "grade"):
        table.add_column(words[name], no_wrap=name != "grade")
    for summary in night["evaluations"]:
        tier = get_tier_name(summary["tier"], language)
        if summary["state"] not in ("completed", "invalid"):
            table.add_row(tier, _format_state(summary, language), clean(told(summary["error"] or "", language)))
        if has_metrics(summary):
            for cells in _list_headline_rows(summary, language):
                table.add_row(tier, *cells)
                tier = ""
    console = make_console()
    console.print("", table)
    console.print(lead_sentence(night["evaluations"])[language], style="bold", soft_wrap=True)
    if foremost := choose_first_evaluation(evaluations_with_metrics(night)):
        advice = clean(advise_next_step(foremost)[0][language])
        console.print(f"{texts('statements', language)['what next']}: {advice}", soft_wrap=True)


def _format_state(summary: EvaluationSummary | FailedEvaluation, language: str) -> str:
    return add_colour(texts("states", language)[summary["state"]], summary["state"])


def _print_metrics(console: Console, metrics: Mapping[str, MetricSummary], language: str) -> None:
    if any(metric["value"] is not None for metric in metrics.values()):
        console.print(_make_metric_table(metrics, language))
    for line in _list_unmeasured(metrics, language):
        console.print(f"[yellow]{clean(line)}[/]", soft_wrap=True)


def _make_metric_table(metrics: Mapping[str, MetricSummary], language: str) -> Table:
    """Return a table with one row per metric that has a value."""
    words = texts("terminal", language)
    table = Table(words["metric"], *(words[name] for name in ("value", "interval", "measured", "grade")), box=None)
    for column in table.columns[1:4]:
        column.justify = "right"
    for column in table.columns[:4]:
        column.no_wrap = True
    for name, metric in metrics.items():
        if metric["value"] is not None:
            table.add_row(*_format_cells(name, metric, language))
    return table


def _list_unmeasured(metrics: Mapping[str, MetricSummary], language: str) -> Iterator[str]:
    """Yield one line per reason for which metrics have no value."""
    words = texts("terminal", language)
    for reason, names in _group_by_reason(metrics).items():
        names_text = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
        values = {"n": len(names), "reason": told(reason, language), "names": names_text}
        yield words["metric not measured" if len(names) == 1 else "metrics not measured"].format(**values)


def _group_by_reason(metrics: Mapping[str, MetricSummary]) -> dict[str, list[str]]:
    """Return the names of the metrics without a value, by reason."""
    names_by_reason: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric["value"] is None:
            names_by_reason.setdefault(metric["reason"] or "", []).append(name)
    return names_by_reason


def _list_headline_rows(summary: EvaluationSummary, language: str) -> Iterator[tuple[str, ...]]:
    """Yield a tier's headline metrics: one row per metric, and one for all without a value for the same reason."""
    headlines = {name: summary["metrics"][name] for name in TIERS[summary["tier"]].headlines}
    groups_by_first = {names[0]: names for names in _group_by_reason(headlines).values()}
    for name, metric in headlines.items():
        if metric["value"] is not None or name in groups_by_first:
            n_more = len(groups_by_first.get(name, ())) - 1
            label, *cells = _format_cells(name, metric, language)
            yield (f"{label} +{n_more}" if n_more > 0 else label, *cells)


def _format_cells(name: str, metric: MetricSummary, language: str) -> tuple[str, ...]:
    counted = f"{metric['n_scored']} / {metric['n_total']}"
    if metric["value"] is None:
        missing = texts("terminal", language)["not measured"]
        return name, f"[yellow]{missing}[/]", "", counted, clean(told(metric["reason"] or "", language))
    grade_names = format_grade(metric)
    grade = add_colour(grade_names[language], metric["grade"] or "") if grade_names else ""
    return (
        name,
        format_metric(name, metric["value"]),
        format_plain_interval(metric, partial(format_metric, name)),
        counted,
        grade,
    )


def _list_strata(tier: str, strata: Mapping[str, Mapping[str, MetricSummary]], language: str) -> Iterator[Table | str]:
    """Yield the tier's headline metrics by stratum, and the stratum to which the other metrics belong."""
    words, names = texts("terminal", language), texts("strata", language)
    headlines = TIERS[tier].headlines
    table = Table(words["stratum"], *headlines, words["measured"], box=None)
    for name, metrics in strata.items():
        values = [metrics[metric] for metric in headlines]
        numbers = ("—" if metric["value"] is None else f"{metric['value']:.3f}" for metric in values)
        table.add_row(names[name], *numbers, f"{values[0]['n_scored']} / {values[0]['n_total']}")
    yield from [table] if strata else []
    if HEADLINE_STRATUM in strata:
        yield f"[bold]{words['headline'].format(stratum=names[HEADLINE_STRATUM])}[/]"


def _print_statuses(console: Console, summary: EvaluationSummary, language: str) -> None:
    words, names = texts("terminal", language), texts("statuses", language)
    unmeasured = {status: count for status, count in summary["statuses"].items() if status not in MEASURED_STATUSES}
    total, cases = summary["n_cases"], case_names(summary)[language]
    if unmeasured:
        why = ", ".join(f"{names[status]} {count}" for status, count in unmeasured.items())
        console.print(f"{words['unmeasured'].format(n=sum(unmeasured.values()), total=total, cases=cases)}: {why}.")
    elif summary["statuses"]:
        console.print(words["all measured"].format(total=total, cases=cases))
    if refused := summary["statuses"].get("sut_refusal"):
        console.print(words["refused"].format(n=refused))
    if summary["coverage"] is not None:
        console.print(f"{words['coverage']}: {summary['coverage']:.1%}")


def _list_bounds(summary: EvaluationSummary, language: str) -> Iterator[str]:
    """Yield the bounds of the headline metrics if the failed cases had been measured."""
    for name in TIERS[summary["tier"]].headlines:
        metric = summary["metrics"].get(name)
        if metric and metric["bound_low"] is not None and metric["bound_high"] is not None:
            ends = {"low": format_metric(name, metric["bound_low"]), "high": format_metric(name, metric["bound_high"])}
            yield texts("terminal", language)["bounds"].format(metric=name, **ends)


def _list_interpretations(summary: EvaluationSummary, language: str) -> Iterator[str]:
    """Yield what easily misread figures mean: a judge's agreement and biases, unsupported facts."""
    words, metrics = texts("terminal", language), summary["metrics"]
    yield from list_correction_lines(metrics, language)
    if invented := unsupported_facts_sentence(summary):
        yield words["unsupported facts"].format(said=invented[language], id=summary["evaluation_id"])
    if summary["tier"] != "judge" or not metrics:
        return
    yield summary_sentence(summary)[language]
    for name in (name for name in metrics if name.startswith("bias_")):
        value, low, high = metrics[name]["value"], metrics[name]["ci_low"], metrics[name]["ci_high"]
        if low is not None and high is not None and (low > 0 or high < 0):
            yield words["judge is moved"].format(what=texts("biases", language)[name], value=value, low=low, high=high)


def _describe_system(system: Mapping[str, Any], language: str) -> str:
    parts = {name.removesuffix("_identity"): str(system[name]).split("|")[0] for name in SYSTEM_PARTS if name in system}
    if "judge" in system:
        parts["judge"] = str(system["judge"]["model"])
    if "pool" in system:
        parts["labels"] = f"filled ({' + '.join(system['pool'])})"
    return ", ".join(f"{name} {translate_value(value, language)}" for name, value in parts.items())
