"""Print a gate's verdict for people, or format it as JUnit XML for CI."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from rich.markup import escape

from yarus.flows.terminal.printing import get_tier_name, join_first, make_console
from yarus.tasks.comparison.corrected_means import is_corrected
from yarus.tasks.comparison.gate import NO_BASELINE, NOTHING_IN_COMMON
from yarus.tasks.comparison.gate_rules import find_measure
from yarus.tasks.comparison.gate_verdicts import GateResult, RuleResult
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.number_format import MINUS_SIGN, format_rounded, use_minus_sign

INVALID_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow", "invalid": "red"}
VERDICTS_BY_URGENCY = ("invalid", "fail", "inconclusive", "pass")
MAX_RULES = 12
"""Maximum number of rules on the first screen; those that failed come first."""
BOUND_STATEMENTS = {
    ("floor", "fail"): "value below",
    ("ceiling", "fail"): "value above",
    ("floor", "inconclusive"): "value near floor",
    ("ceiling", "inconclusive"): "value near ceiling",
}
"""Kind of a rule about a bound, and its verdict -> key of the sentence that gives the figures."""
MAX_NAMES = 3
"""Maximum number of undecided rules named in the first line."""


def print_gate(document: GateResult, language: str, *, strict: bool = False, show_all: bool = False) -> None:
    """Print the verdict and what to do, then the rules, failed ones first.

    Args:
        document: returned by `yarus.tasks.comparison.gate.gate`.
        language: ru or en.
        strict: whether inconclusive rules fail.
        show_all: print every rule.
    """
    words = texts("gate", language)
    console = make_console()
    console.print()
    for line in _list_verdict_lines(document, language):
        console.print(escape(line), style=f"bold {COLOURS[document['verdict']]}", soft_wrap=True)
    title = (get_tier_name(document["tier"], language), document["source"], document["evaluation_id"])
    console.print(escape(" · ".join(title)), soft_wrap=True)
    if document["verdict"] == "invalid":
        return
    if document["file"] is None:
        console.print(words["own rules"], style="dim", soft_wrap=True)
    if document["baseline"]:
        kind = words[f"baseline {document['baseline_kind']}"]
        compared = words["baseline"].format(baseline=document["baseline"], kind=kind)
        console.print(escape(compared), style="dim", soft_wrap=True)
    rules = sorted(document["rules"], key=lambda rule: VERDICTS_BY_URGENCY.index(rule["verdict"]))
    n_shown = len(rules) if show_all else MAX_RULES
    for rule in rules[:n_shown]:
        console.print(f"{_colour(rule['verdict'], words)}  {escape(_format_rule(rule, words))}", soft_wrap=True)
        if reasons := _describe_reasons(rule, language):
            console.print(f"    {escape(reasons)}", style="dim", soft_wrap=True)
    if more := Counter(rule["verdict"] for rule in rules[n_shown:]):
        counts = ", ".join(f"{words[verdict]} {n}" for verdict, n in more.items())
        console.print(words["more rules"].format(counts=counts), style="dim", soft_wrap=True)
    if document["verdict"] == "inconclusive" and not strict:
        console.print(words["strict"], soft_wrap=True)


def _list_verdict_lines(document: GateResult, language: str) -> Iterator[str]:
    """Yield the verdict with the figures or reasons that decided it, what no model judged, and what to do."""
    words, verdict = texts("gate", language), document["verdict"]
    values = {"baseline": document["baseline"], "evaluation": document["evaluation_id"]}
    if verdict == "invalid":
        reason = told(document["error"] or "", language).rstrip(".") or words["nothing was measured"]
        yield words["verdict invalid"].format(error=reason)
        yield words["next invalid"].format(**values)
        return
    decisive = [rule for rule in document["rules"] if rule["verdict"] == verdict]
    counts = {"n": len(decisive), "total": len(document["rules"]), "more": len(decisive) - 1}
    causes = [] if verdict == "pass" else _describe_causes(decisive, language)
    key = "verdict fail and more" if verdict == "fail" and counts["more"] else f"verdict {verdict}"
    causes_text = join_first(causes, MAX_NAMES, "; ")
    yield words[key].format(**counts, statement="".join(causes[:1]), causes=causes_text)
    if unjudged := document["unjudged_metrics"]:
        yield f"{words['not judged'].format(metrics=', '.join(unjudged))} {texts('guidance', language)['set a judge']}"
    if verdict == "fail":
        yield words["next fail" if document["baseline"] else "next read"].format(**values)
    elif verdict == "inconclusive":
        yield from _list_missing(decisive, words)
        if any(rule["reason"] in (NO_BASELINE, NOTHING_IN_COMMON) for rule in decisive):
            yield words["next baseline"].format(**values)


def _list_missing(rules: Sequence[RuleResult], words: dict[str, str]) -> Iterator[str]:
    """Yield how many more cases, and how many more labels, would decide all the rules."""
    for key, is_of_labels in (("next cases", False), ("next labels", True)):
        chosen = (rule for rule in rules if is_corrected(rule["metric"]) == is_of_labels)
        if needs := [rule["n_cases_needed"] for rule in chosen if rule["n_cases_needed"] is not None]:
            yield words[key].format(needs=_format_count(max(needs)))


def _describe_causes(rules: Sequence[RuleResult], language: str) -> list[str]:
    """Return what decided each rule; only the reason if all have the same."""
    reasons = {_translate_reason(rule, language) for rule in rules}
    return [*reasons] if len(reasons) == 1 and any(reasons) else [_describe_cause(rule, language) for rule in rules]


def _describe_cause(rule: RuleResult, language: str) -> str:
    """Return the figures that decided a rule, or the reason why they could not."""
    words, name, bound = texts("gate", language), _name_metric(rule), _format_bound(rule)
    if rule["reason"]:
        return f"{name}: {_translate_reason(rule, language)}"
    ends = _format_ends(rule)
    details = [words["interval"].format(**ends)] if ends else []
    figures = {"metric": name, "value": _format(rule["metric"], rule["value"]), "bound": bound}
    if rule["difference"] is None:
        statement = words[BOUND_STATEMENTS[rule["rule"], rule["verdict"]]].format(**figures)
        return f"{statement} ({details[0]})" if details else statement
    details.insert(0, _format(rule["metric"], rule["difference"], sign="+"))
    details += [words["allowed loss"].format(bound=bound)] if bound else []
    baseline = _format(rule["metric"], rule["baseline"])
    return words["changed"].format(**figures, baseline=baseline, details="; ".join(details))


def _format_ends(rule: RuleResult) -> dict[str, str]:
    """Return both ends of the interval of the value or difference, infinity for an open one; empty without one."""
    low, high, sign = rule["ci_low"], rule["ci_high"], "" if rule["difference"] is None else "+"
    if low is None and high is None:
        return {}
    return {
        "low": f"{MINUS_SIGN}∞" if low is None else _format(rule["metric"], low, sign=sign),
        "high": "∞" if high is None else _format(rule["metric"], high, sign=sign),
    }


def should_fail(document: GateResult, *, strict: bool) -> bool:
    """Return whether the gate fails; with `strict`, also if too few cases were measured to decide."""
    return document["verdict"] in (("fail", "invalid", "inconclusive") if strict else ("fail", "invalid"))


def list_gate_lines(document: GateResult, language: str) -> Iterator[str]:
    """Yield the verdict of the evaluation and of each rule, with the reasons, as plain text."""
    words = texts("gate", language)
    first, *further = _list_verdict_lines(document, language)
    yield f"{document['evaluation_id']}: {first}"
    yield from further
    for rule in [] if document["verdict"] == "invalid" else document["rules"]:
        reasons = _describe_reasons(rule, language)
        yield f"{words[rule['verdict']]}: {_format_rule(rule, words)}" + (f" ({reasons})" if reasons else "")


def format_junit(document: GateResult, language: str, *, strict: bool) -> bytes:
    """Return the verdict as JUnit XML, one test case per rule.

    `fail` is a failure, `invalid` an error, `inconclusive` is skipped.

    Args:
        document: returned by `yarus.tasks.comparison.gate.gate`.
        language: ru or en.
        strict: whether an inconclusive rule is a failure, too.
    """
    words = texts("gate", language)
    kinds = {"fail": "failure", "invalid": "error", "inconclusive": "failure" if strict else "skipped"}
    outcomes = [kinds.get(rule["verdict"]) for rule in document["rules"]]
    counts = {"tests": len(outcomes), "failures": outcomes.count("failure"), "errors": outcomes.count("error")}
    counts["skipped"] = outcomes.count("skipped")
    suite = ElementTree.Element("testsuite", name=_replace_invalid_xml(f"yarus gate {document['evaluation_id']}"))
    for name, count in counts.items():
        suite.set(name, str(count))
    for rule, kind in zip(document["rules"], outcomes, strict=True):
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_replace_invalid_xml(f"{document['source']}.{document['tier']}"),
            name=_replace_invalid_xml(_format_rule(rule, words)),
        )
        details = _replace_invalid_xml(_describe_reasons(rule, language) or told(document["error"] or "", language))
        if kind:
            ElementTree.SubElement(case, kind, message=_replace_invalid_xml(words[rule["verdict"]])).text = details
        else:
            ElementTree.SubElement(case, "system-out").text = details
    tree: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return tree


def _format_rule(rule: RuleResult, words: dict[str, str]) -> str:
    kind = "margin" if rule["rule"] == "no regression" and rule["bound"] is not None else rule["rule"]
    return words[kind].format(metric=_name_metric(rule), bound=_format_bound(rule))


def _name_metric(rule: RuleResult) -> str:
    return rule["metric"] + (f" [{rule['stratum']}]" if rule["stratum"] else "")


def _format_bound(rule: RuleResult) -> str:
    return "" if rule["bound"] is None else use_minus_sign(f"{rule['bound']:g}")


def _describe_reasons(rule: RuleResult, language: str) -> str:
    """Return what the verdict is based on."""
    return "; ".join(_list_reasons(rule, language))


def _translate_reason(rule: RuleResult, language: str) -> str:
    reason = rule["reason"] or ""
    return texts("gate", language).get(reason) or told(reason, language)


def _list_reasons(rule: RuleResult, language: str) -> Iterator[str]:
    words = texts("gate", language)
    values = {"value": _format(rule["metric"], rule["value"]), "baseline": _format(rule["metric"], rule["baseline"])}
    ends = _format_ends(rule)
    if rule["difference"] is not None:
        p = rule["p"] if rule["p_holm"] is None else rule["p_holm"]
        values["difference"] = _format(rule["metric"], rule["difference"], sign="+")
        yield words["difference"].format(
            **{"low": "—", "high": "—"} | values | ends, p="—" if p is None else f"{p:.3g}"
        )
    elif rule["value"] is not None:
        yield words["value" if ends else "value alone"].format(**values, **ends)
    if rule["reason"]:
        yield _translate_reason(rule, language)
    if rule["verdict"] == "pass" and rule["min_detectable_effect"] is not None:
        key = "detectable" if rule["bound"] is None else "detectable beyond"
        figures = {name: _format(rule["metric"], rule[name]) for name in ("min_detectable_effect", "bound")}
        yield words[key].format(detectable=figures["min_detectable_effect"], bound=figures["bound"])
    if rule["n_cases_needed"] is not None:
        template = words["needs labels" if is_corrected(rule["metric"]) else "needs"]
        yield template.format(needs=_format_count(rule["n_cases_needed"]))


def _format_count(n: int) -> str:
    return f"{n:,}".replace(",", " ")


def _format(name: str, value: float | None, *, sign: str = "") -> str:
    return "—" if value is None else use_minus_sign(format_rounded(value, find_measure(name).unit, sign))


def _colour(verdict: str, words: dict[str, str]) -> str:
    return f"[{COLOURS[verdict]}]{words[verdict]}[/]"


def _replace_invalid_xml(text: str) -> str:
    """Return the text with the characters replaced that XML 1.0 does not allow."""
    return INVALID_XML.sub("\ufffd", text)
