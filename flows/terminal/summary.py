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
    join_first,
    make_console,
    make_titled_table,
)
from yarus.tasks.cases.vocabulary import HEADLINE_STRATUM, MEASURED_STATUSES
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told, translate_value
from yarus.tasks.config.tiers import TIERS, shown_headlines
from yarus.tasks.evaluation.config import format_label
from yarus.tasks.evaluation.findings.exam import exam_tables
from yarus.tasks.evaluation.guidance import (
    advise_next_step,
    case_names,
    choose_first_evaluation,
    finding_sentences,
    has_stand_in,
    lead_sentence,
    summary_sentence,
    unsupported_facts_sentence,
)
from yarus.tasks.evaluation.number_format import format_grade, format_plain_interval
from yarus.tasks.evaluation.queries import format_conditions
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


STATE_SENTENCES = {
    "completed": "evaluation completed",
    "invalid": "evaluation invalid",
    "failed": "evaluation failed",
    "cancelled": "evaluation cancelled",
    "running": "evaluation running",
}
"""State -> key of the sentence that gives the reason for it."""
MAX_NAMES = 3
"""Maximum number of names of metrics in a line about several."""
MAX_REASONS = 4
"""Maximum number of reasons why metrics were not measured; those of headline metrics come first."""
SYSTEM_PARTS: tuple[str, ...] = ("sut", "retriever", "embedder_identity", "vectors", "index_recall", "generator")
SYSTEM_PARTS += ("reranker_identity", "rerank_depth", "generator_prompt", "texts", "unit", "k", "similarity_embedder")


def print_summary(summary: EvaluationSummary, language: str, *, show_all: bool = False) -> None:
    """Print an evaluation: the answer, the headline metrics with grades, and what could not be measured and why.

    Args:
        summary: returned by `yarus.tasks.evaluation.summary.read_summary`.
        language: ru or en.
        show_all: print all metrics, reasons, kinds of the exam, the system and the comparability key, too.
    """
    words = texts("terminal", language)
    console = make_console()
    console.print()
    for line in _list_answer_lines(summary, language):
        console.print(clean(line), style="bold", soft_wrap=True)
    tier, state = get_tier_name(summary["tier"], language), _format_state(summary, language)
    console.print(f"{tier} · {clean(summary['source'])} · {state} {clean(format_label(summary))}".rstrip())
    if summary["cases"]:
        console.print(f"{words['case set']}: {clean(summary['cases']['name'])} · {summary['cases']['sha256'][:12]}")
    system = _describe_system(summary["system"], language) if show_all else ""
    if system:
        console.print(f"{words['system']}: {clean(system)}", style="dim")
    if summary["metrics"]:
        _print_metrics(console, summary, language, show_all=show_all)
    if "exam" in summary:
        console.print(*make_exam_tables(summary, language)[: 2 if show_all else 1])
    _print_statuses(console, summary, language, show_all=show_all)
    findings = (sentence[language] for sentence in finding_sentences(summary))
    for line in (*_list_bounds(summary, language), *findings, *_list_interpretations(summary, language)):
        console.print(clean(line), soft_wrap=True)
    for note in summary["notes"]:
        console.print(clean(texts("notes", language)[note["note"]].format(**note)), soft_wrap=True)
    for line in _list_stored(summary, language, show_all=show_all):
        console.print(clean(line), soft_wrap=True)


def _list_stored(summary: EvaluationSummary, language: str, *, show_all: bool) -> Iterator[str]:
    """Yield where the cases are stored, and with `show_all` the comparability key."""
    words = texts("terminal", language)
    if summary["parquet"] and show_all:
        yield f"{words['key']}: {summary['comparability_key']}"
    if summary["parquet"]:
        yield f"{words['file']}: {summary['parquet']}"


def _list_answer_lines(summary: EvaluationSummary, language: str) -> Iterator[str]:
    """Yield the answer: what was measured and how sure it is, or why it cannot be said; then what to do."""
    if summary["error"]:
        reason = told(summary["error"], language).rstrip(".")
        yield texts("terminal", language)[STATE_SENTENCES[summary["state"]]].format(reason=reason)
    if summary["state"] == "completed":
        yield summary_sentence(summary)[language]
    if summary["state"] != "running" and (summary["parquet"] or not has_metrics(summary)):
        yield _format_advice(summary, language)


def _format_advice(summary: EvaluationSummary, language: str) -> str:
    """Return what to do next, and the command that shows the cases in question, if there are any."""
    advice, condition = advise_next_step(summary)
    if not condition:
        return advice[language]
    where = " ".join(f"--where '{text}'" for text in format_conditions(condition))
    values = {"advice": advice[language], "id": summary["evaluation_id"], "where": where}
    return texts("terminal", language)["read"].format(**values)


def print_overview(night: NightDocument, language: str) -> None:
    """Print the answer of a nightly run, then the headline metrics of all tiers, without failure rates of 0."""
    words, console = texts("terminal", language), make_console()
    console.print()
    console.print(clean(lead_sentence(night["evaluations"])[language]), style="bold", soft_wrap=True)
    if foremost := choose_first_evaluation(evaluations_with_metrics(night)):
        advice = clean(advise_next_step(foremost)[0][language])
        console.print(f"{texts('statements', language)['what next']}: {advice}", style="bold", soft_wrap=True)
    table = make_titled_table(words["overview"])
    for name in ("tier", "metric", "value", "interval", "measured", "grade"):
        table.add_column(words[name], no_wrap=name != "grade")
    unmeasured: list[str] = []
    for summary in night["evaluations"]:
        tier = get_tier_name(summary["tier"], language)
        if summary["state"] not in ("completed", "invalid"):
            table.add_row(tier, _format_state(summary, language), clean(told(summary["error"] or "", language)))
        if has_metrics(summary):
            headlines = _select_headlines(summary)
            for name, metric in headlines.items():
                if metric["value"] is not None and (name, metric["value"]) != ("sut_error_rate", 0):
                    table.add_row(tier, *_format_cells(name, metric, language))
                    tier = ""
            name = texts(f"tiers.{summary['tier']}", language)["short"]
            unmeasured += [f"{name}: {line}" for line in _list_unmeasured(headlines, language)]
    console.print("", table)
    for line in unmeasured:
        console.print(f"[yellow]{clean(line)}[/]", soft_wrap=True)
    console.print(words["details"], style="dim", soft_wrap=True)


def _format_state(summary: EvaluationSummary | FailedEvaluation, language: str) -> str:
    return add_colour(texts("states", language)[summary["state"]], summary["state"])


def _print_metrics(console: Console, summary: EvaluationSummary, language: str, *, show_all: bool) -> None:
    """Print the table of metrics that have a value, and one line per reason for the others; with `show_all` strata."""
    words, strata = texts("terminal", language), summary.get("strata", {})
    if HEADLINE_STRATUM in strata:
        stratum = texts("strata", language)[HEADLINE_STRATUM]
        console.print(words["headline"].format(stratum=stratum), style="bold")
    metrics = {name: metric for name, metric in summary["metrics"].items() if not name.startswith("exam_")}
    first = _select_headlines(summary)
    chosen = metrics if show_all else first
    if any(metric["value"] is not None for metric in chosen.values()):
        console.print(_make_metric_table(chosen, language))
    n_more = sum(metric["value"] is not None for metric in metrics.values()) - sum(
        metric["value"] is not None for metric in chosen.values()
    )
    if n_more:
        console.print(words["more metrics"].format(n=n_more, id=summary["evaluation_id"]), style="dim", soft_wrap=True)
    if strata and show_all:
        console.print(_make_strata_table(summary["tier"], strata, language))
    lines = list(_list_unmeasured(first | metrics, language))
    for line in lines if show_all else lines[:MAX_REASONS]:
        console.print(f"[yellow]{clean(line)}[/]", soft_wrap=True)
    if not show_all and len(lines) > MAX_REASONS:
        console.print(words["more reasons"].format(n=len(lines) - MAX_REASONS), style="dim", soft_wrap=True)


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
        values = {"n": len(names), "reason": told(reason, language), "names": join_first(names, MAX_NAMES)}
        yield words["metric not measured" if len(names) == 1 else "metrics not measured"].format(**values)


def _group_by_reason(metrics: Mapping[str, MetricSummary]) -> dict[str, list[str]]:
    """Return the names of the metrics without a value, by reason."""
    names_by_reason: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric["value"] is None:
            names_by_reason.setdefault(metric["reason"] or "", []).append(name)
    return names_by_reason


def _select_headlines(summary: EvaluationSummary) -> dict[str, MetricSummary]:
    """Return the metrics that a table shows first."""
    metrics = summary["metrics"]
    return {name: metrics[name] for name in shown_headlines(summary["tier"], metrics) if name in metrics}


def _format_cells(name: str, metric: MetricSummary, language: str) -> tuple[str, ...]:
    grade_names = format_grade(metric)
    grade = add_colour(grade_names[language], metric["grade"] or "") if grade_names else ""
    return (
        name,
        "" if metric["value"] is None else format_metric(name, metric["value"]),
        format_plain_interval(metric, partial(format_metric, name)),
        f"{metric['n_scored']} / {metric['n_total']}",
        grade,
    )


def _make_strata_table(tier: str, strata: Mapping[str, Mapping[str, MetricSummary]], language: str) -> Table:
    """Return a table of the tier's headline metrics by stratum."""
    words, names = texts("terminal", language), texts("strata", language)
    headlines = TIERS[tier].headlines
    table = Table(words["stratum"], *headlines, words["measured"], box=None)
    for name, metrics in strata.items():
        values = [metrics[metric] for metric in headlines]
        numbers = ("—" if metric["value"] is None else f"{metric['value']:.3f}" for metric in values)
        table.add_row(names[name], *numbers, f"{values[0]['n_scored']} / {values[0]['n_total']}")
    return table


def _print_statuses(console: Console, summary: EvaluationSummary, language: str, *, show_all: bool) -> None:
    words, names = texts("terminal", language), texts("statuses", language)
    unmeasured = {status: count for status, count in summary["statuses"].items() if status not in MEASURED_STATUSES}
    total, cases = summary["n_cases"], case_names(summary)[language]
    if unmeasured:
        why = ", ".join(f"{names[status]} {count}" for status, count in unmeasured.items())
        console.print(words["unmeasured"].format(n=sum(unmeasured.values()), total=total, cases=cases, why=why))
    elif summary["statuses"]:
        console.print(words["all measured"].format(total=total, cases=cases))
    if refused := summary["statuses"].get("sut_refusal"):
        console.print(words["refused"].format(n=refused))
    if summary["coverage"] is not None and (show_all or summary["coverage"] < 1):
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
    if summary["tier"] != "judge":
        return
    if metrics and summary["state"] != "completed":  # else it is the answer
        yield summary_sentence(summary)[language]
    for name in (name for name in metrics if name.startswith("bias_")):
        value, low, high = metrics[name]["value"], metrics[name]["ci_low"], metrics[name]["ci_high"]
        is_meaningful = name != "bias_own_model" or not has_stand_in(summary)  # a stand-in has no model
        if is_meaningful and low is not None and high is not None and (low > 0 or high < 0):
            yield words["judge is moved"].format(what=texts("biases", language)[name], value=value, low=low, high=high)


def _describe_system(system: Mapping[str, Any], language: str) -> str:
    parts = {name.removesuffix("_identity"): str(system[name]).split("|")[0] for name in SYSTEM_PARTS if name in system}
    if "judge" in system:
        parts["judge"] = str(system["judge"]["model"])
    if "pool" in system:
        parts["labels"] = f"filled ({' + '.join(system['pool'])})"
    return ", ".join(f"{name} {translate_value(value, language)}" for name, value in parts.items())
