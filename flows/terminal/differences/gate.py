"""A gate's verdict: in words for people, as JUnit XML for what runs it."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from rich.markup import escape

from yarus.flows.terminal.printing import new_console, tier_name
from yarus.metrics.table.corrected import SUFFIX
from yarus.tasks.comparison.gate_rules import measure
from yarus.tasks.comparison.gate_verdicts import GateResult, RuleResult
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.numbers import rounded

NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow", "invalid": "red"}


def print_gate(document: GateResult, language: str, *, strict: bool = False) -> None:
    """The document of `yarus.tasks.comparison.gate.gate`; whether what is inconclusive stops."""
    words = texts("gate", language)
    console = new_console()
    what = (tier_name(document["tier"], language), document["source"], document["evaluation_id"])
    console.print(f"\n[bold]{escape(' · '.join(what))}[/] · {_coloured(document['verdict'], words)}", soft_wrap=True)
    if document["file"] is None:
        console.print(words["own rules"], style="dim", soft_wrap=True)
    if document["baseline"]:
        kind = words[f"baseline {document['baseline_kind']}"]
        compared = words["baseline"].format(baseline=document["baseline"], kind=kind)
        console.print(escape(compared), style="dim", soft_wrap=True)
    if document["verdict"] == "invalid":
        console.print(escape(told(document["error"] or "", language)), style="yellow", soft_wrap=True)
    for rule in document["rules"]:
        console.print(f"{_coloured(rule['verdict'], words)}  {escape(_named(rule, words))}", soft_wrap=True)
        if said := _said(rule, words):
            console.print(f"    {escape(said)}", style="dim", soft_wrap=True)
    if document["verdict"] == "inconclusive" and not strict:
        console.print(words["strict"], soft_wrap=True)


def stops(document: GateResult, *, strict: bool) -> bool:
    """Whether what waits for the gate stops; with `strict` also where too few cases were measured to tell."""
    return document["verdict"] in (("fail", "invalid", "inconclusive") if strict else ("fail", "invalid"))


def gate_lines(document: GateResult, language: str) -> Iterator[str]:
    """The verdict of the evaluation and of each rule, with what it rests on, as plain text."""
    words = texts("gate", language)
    yield f"{document['evaluation_id']}: {words[document['verdict']]} {document['error'] or ''}".rstrip()
    for rule in document["rules"]:
        said = _said(rule, words)
        yield f"{words[rule['verdict']]}: {_named(rule, words)}" + (f" ({said})" if said else "")


def junit(document: GateResult, language: str, *, strict: bool) -> bytes:
    """The verdict as JUnit XML, one test case a rule: `fail` is a failure, `invalid` an error, inconclusive is skipped.

    Args:
        document: of `yarus.tasks.comparison.gate.gate`.
        language: of the words.
        strict: inconclusive is a failure too.
    """
    words = texts("gate", language)
    kinds = {"fail": "failure", "invalid": "error", "inconclusive": "failure" if strict else "skipped"}
    found = [kinds.get(rule["verdict"]) for rule in document["rules"]]
    counts = {"tests": len(found), "failures": found.count("failure"), "errors": found.count("error")}
    counts["skipped"] = found.count("skipped")
    suite = ElementTree.Element("testsuite", name=_clean(f"yarus gate {document['evaluation_id']}"))
    for name, count in counts.items():
        suite.set(name, str(count))
    for rule, kind in zip(document["rules"], found, strict=True):
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_clean(f"{document['source']}.{document['tier']}"),
            name=_clean(_named(rule, words)),
        )
        said = _clean(_said(rule, words) or told(document["error"] or "", language))
        if kind:
            ElementTree.SubElement(case, kind, message=_clean(words[rule["verdict"]])).text = said
        else:
            ElementTree.SubElement(case, "system-out").text = said
    tree: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return tree


def _named(rule: RuleResult, words: dict[str, str]) -> str:
    kind = "margin" if rule["rule"] == "no regression" and rule["bound"] is not None else rule["rule"]
    metric = rule["metric"] + (f" [{rule['stratum']}]" if rule["stratum"] else "")
    return words[kind].format(metric=metric, bound=None if rule["bound"] is None else f"{rule['bound']:g}")


def _said(rule: RuleResult, words: dict[str, str]) -> str:
    """What the verdict rests on."""
    return "; ".join(_parts(rule, words))


def _parts(rule: RuleResult, words: dict[str, str]) -> Iterator[str]:
    shown = {"value": _number(rule["metric"], rule["value"]), "baseline": _number(rule["metric"], rule["baseline"])}
    shown |= {"low": _number(rule["metric"], rule["ci_low"]), "high": _number(rule["metric"], rule["ci_high"])}
    if rule["ci_low"] is not None and rule["ci_high"] is None:
        shown["high"] = "∞"
    if rule["difference"] is not None:
        p = rule["p"] if rule["p_holm"] is None else rule["p_holm"]
        signed = {"low": rule["ci_low"], "high": rule["ci_high"], "difference": rule["difference"]}
        shown |= {name: _number(rule["metric"], figure, sign="+") for name, figure in signed.items()}
        yield words["difference"].format(**shown, p="—" if p is None else f"{p:.3g}")
    elif rule["value"] is not None:
        yield words["value alone" if rule["ci_low"] is None else "value"].format(**shown)
    if rule["reason"]:
        yield words.get(str(rule["reason"]), str(rule["reason"]))
    if rule["verdict"] == "pass" and rule["smallest_detectable"] is not None:
        key = "detectable" if rule["bound"] is None else "detectable beyond"
        figures = {name: _number(rule["metric"], rule[name]) for name in ("smallest_detectable", "bound")}
        yield words[key].format(detectable=figures["smallest_detectable"], bound=figures["bound"])
    if rule["needs"] is not None:
        said = words["needs labels" if rule["metric"].endswith(SUFFIX) else "needs"]
        yield said.format(needs=f"{rule['needs']:,}".replace(",", " "))


def _number(name: str, value: float | None, *, sign: str = "") -> str:
    return "—" if value is None else rounded(value, measure(name).unit, sign)


def _coloured(verdict: str, words: dict[str, str]) -> str:
    return f"[{COLOURS[verdict]}]{words[verdict]}[/]"


def _clean(text: str) -> str:
    """The text with what XML 1.0 does not allow replaced."""
    return NO_XML.sub("\ufffd", text)
