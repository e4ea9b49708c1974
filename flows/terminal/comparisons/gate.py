"""Print a gate's verdict for people, or format it as JUnit XML for CI."""

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from rich.markup import escape

from yarus.flows.terminal.printing import get_tier_name, make_console
from yarus.metrics.table.corrected import CORRECTED_SUFFIX
from yarus.tasks.comparison.gate_rules import find_measure
from yarus.tasks.comparison.gate_verdicts import GateResult, RuleResult
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.number_format import format_rounded

INVALID_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow", "invalid": "red"}


VERDICTS_BY_URGENCY = ("invalid", "fail", "inconclusive", "pass")
MAX_RULES = 12
"""Maximum number of rules on the first screen; those that failed come first."""
MAX_NAMES = 3
"""Maximum number of rules named in the first line."""


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
    if document["file"] is None:
        console.print(words["own rules"], style="dim", soft_wrap=True)
    if document["baseline"]:
        kind = words[f"baseline {document['baseline_kind']}"]
        compared = words["baseline"].format(baseline=document["baseline"], kind=kind)
        console.print(escape(compared), style="dim", soft_wrap=True)
    rules = sorted(document["rules"], key=lambda rule: VERDICTS_BY_URGENCY.index(rule["verdict"]))
    n_shown = len(rules) if show_all else MAX_RULES
    for rule in rules[:n_shown]:
        console.print(f"{_colour(rule['verdict'], words)}  {escape(_describe_rule(rule, words))}", soft_wrap=True)
        if reasons := _describe_reasons(rule, words):
            console.print(f"    {escape(reasons)}", style="dim", soft_wrap=True)
    if more := Counter(rule["verdict"] for rule in rules[n_shown:]):
        counts = ", ".join(f"{words[verdict]} {n}" for verdict, n in more.items())
        console.print(words["more rules"].format(counts=counts), style="dim", soft_wrap=True)
    if document["verdict"] == "inconclusive" and not strict:
        console.print(words["strict"], soft_wrap=True)


def _list_verdict_lines(document: GateResult, language: str) -> Iterator[str]:
    """Yield the verdict with the rules that decided it, and what to do."""
    words, verdict = texts("gate", language), document["verdict"]
    if verdict == "invalid":
        yield f"{words['verdict invalid']}: {told(document['error'] or '', language)}."
        return
    decisive = [rule for rule in document["rules"] if rule["verdict"] == verdict]
    names = "; ".join(_describe_rule(rule, words) for rule in decisive[:MAX_NAMES])
    names += "; …" if len(decisive) > MAX_NAMES else ""
    counts = {"n": len(decisive), "total": len(document["rules"])}
    yield f"{words[f'verdict {verdict}'].format(**counts)}{'' if verdict == 'pass' or not names else f': {names}'}."
    needs = max((rule["n_cases_needed"] or 0 for rule in decisive), default=0)
    if verdict == "fail" and document["baseline"]:
        yield words["next fail"].format(baseline=document["baseline"], evaluation=document["evaluation_id"])
    elif verdict == "fail":
        yield words["next read"].format(evaluation=document["evaluation_id"])
    elif verdict == "inconclusive" and needs:
        yield words["next inconclusive"].format(needs=f"{needs:,}".replace(",", " "))


def should_fail(document: GateResult, *, strict: bool) -> bool:
    """Return whether the gate fails; with `strict`, also if too few cases were measured to decide."""
    return document["verdict"] in (("fail", "invalid", "inconclusive") if strict else ("fail", "invalid"))


def list_gate_lines(document: GateResult, language: str) -> Iterator[str]:
    """Yield the verdict of the evaluation and of each rule, with the reasons, as plain text."""
    words = texts("gate", language)
    yield f"{document['evaluation_id']}: {words[document['verdict']]} {document['error'] or ''}".rstrip()
    for rule in document["rules"]:
        reasons = _describe_reasons(rule, words)
        yield f"{words[rule['verdict']]}: {_describe_rule(rule, words)}" + (f" ({reasons})" if reasons else "")


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
            name=_replace_invalid_xml(_describe_rule(rule, words)),
        )
        details = _replace_invalid_xml(_describe_reasons(rule, words) or told(document["error"] or "", language))
        if kind:
            ElementTree.SubElement(case, kind, message=_replace_invalid_xml(words[rule["verdict"]])).text = details
        else:
            ElementTree.SubElement(case, "system-out").text = details
    tree: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return tree


def _describe_rule(rule: RuleResult, words: dict[str, str]) -> str:
    kind = "margin" if rule["rule"] == "no regression" and rule["bound"] is not None else rule["rule"]
    metric = rule["metric"] + (f" [{rule['stratum']}]" if rule["stratum"] else "")
    return words[kind].format(metric=metric, bound=None if rule["bound"] is None else f"{rule['bound']:g}")


def _describe_reasons(rule: RuleResult, words: dict[str, str]) -> str:
    """Return what the verdict is based on."""
    return "; ".join(_list_reasons(rule, words))


def _list_reasons(rule: RuleResult, words: dict[str, str]) -> Iterator[str]:
    values = {"value": _format(rule["metric"], rule["value"]), "baseline": _format(rule["metric"], rule["baseline"])}
    values |= {"low": _format(rule["metric"], rule["ci_low"]), "high": _format(rule["metric"], rule["ci_high"])}
    if rule["ci_low"] is not None and rule["ci_high"] is None:
        values["high"] = "∞"
    if rule["difference"] is not None:
        p = rule["p"] if rule["p_holm"] is None else rule["p_holm"]
        signed_figures = {"low": rule["ci_low"], "high": rule["ci_high"], "difference": rule["difference"]}
        values |= {name: _format(rule["metric"], figure, sign="+") for name, figure in signed_figures.items()}
        yield words["difference"].format(**values, p="—" if p is None else f"{p:.3g}")
    elif rule["value"] is not None:
        yield words["value alone" if rule["ci_low"] is None else "value"].format(**values)
    if rule["reason"]:
        yield words.get(str(rule["reason"]), str(rule["reason"]))
    if rule["verdict"] == "pass" and rule["min_detectable_effect"] is not None:
        key = "detectable" if rule["bound"] is None else "detectable beyond"
        figures = {name: _format(rule["metric"], rule[name]) for name in ("min_detectable_effect", "bound")}
        yield words[key].format(detectable=figures["min_detectable_effect"], bound=figures["bound"])
    if rule["n_cases_needed"] is not None:
        template = words["needs labels" if rule["metric"].endswith(CORRECTED_SUFFIX) else "needs"]
        yield template.format(needs=f"{rule['n_cases_needed']:,}".replace(",", " "))


def _format(name: str, value: float | None, *, sign: str = "") -> str:
    return "—" if value is None else format_rounded(value, find_measure(name).unit, sign)


def _colour(verdict: str, words: dict[str, str]) -> str:
    return f"[{COLOURS[verdict]}]{words[verdict]}[/]"


def _replace_invalid_xml(text: str) -> str:
    """Return the text with the characters replaced that XML 1.0 does not allow."""
    return INVALID_XML.sub("\ufffd", text)
