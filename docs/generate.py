"""Write docs/metrics.md, simulations.md, schemas and the tables of docs/json.md and judge.md: `python docs/generate.py`."""
# ruff: noqa: E501  # the table of examples is read in lines

import importlib
import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import log
from pathlib import Path
from typing import Any

from yarus.metrics import text
from yarus.metrics.exam_kinds import KINDS as EXAMINED
from yarus.metrics.metric import GRADE_LADDERS
from yarus.metrics.table import GOALS, METRICS, Metric, metrics_for_tier
from yarus.tasks.config.texts import texts, translations
from yarus.tasks.config.tiers import TIERS

TARGET = Path(__file__).with_name("metrics.md")
SIMULATIONS = Path(__file__).with_name("simulations.md")
SIMULATION_TABLES = Path(__file__).with_name("simulations")
SIMULATED = json.loads(Path(__file__).with_name("simulated.json").read_text(encoding="utf-8"))
SIMULATIONS_PROSE = Path(__file__).with_name("simulations.template.md")
JUDGE = Path(__file__).with_name("judge.md")
PEOPLE = json.loads(Path(__file__).with_name("people.json").read_text(encoding="utf-8"))
PROSE = Path(__file__).with_name("metrics.template.md")
KINDS = {
    "algorithmic": "a formula",
    "judged": "a language model's judgement",
    "hybrid": "a formula on what a model gives",
}
AGGREGATES = {
    "mean": "mean over the measured cases",
    "p50": "median",
    "p95": "95th percentile",
    "whole": "over the set",
}
INTERVALS = {
    "wilson": "Wilson",
    "bca": "BCa bootstrap",
    "order": "order statistics",
    "posterior": "posterior of the outcomes",
    "percentile": "percentile bootstrap",
    "student": "Student's t",
    "none": "none",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example of the seed documents, computed anew."""

    label: str
    function: str
    hypothesis: str
    reference: str
    seed: str
    note: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)
    """Options under which the note's `{}` is computed."""

    def value(self, **options: object) -> float:
        """Return the metric of this pair."""
        return float(getattr(text, self.function)([self.hypothesis], [self.reference], **(self.options | options))[0])


FOX = "Быстрая коричневая лиса прыгает через ленивую собаку"
PARIS = "Париж - столица Франции."
ORDER = "Через ленивую собаку прыгает быстрая коричневая лиса."
LEARNING = "алгоритмы машинного обучения"
LANGUAGE = "Обработка естественного языка"
AI = "Искусственный интеллект помогает медицинским специалистам диагностировать заболевания быстрее и точнее."
AI_SHORT = "ИИ помогает врачам быстрее диагностировать болезни."
MISFIT = "the seed's figure does not follow from its formula; "
SPACED = {"whitespace": True}
EDITS = {"measure": "levenshtein"}
EXAMPLES = (
    Example("BLEU", "bleu", "Кошка сидела на коврике.", "Кошка сидит на коврике.", "≥ 0.5", "{} with 13a tokens", other={"tokenizer": "13a"}),
    Example("BLEU", "bleu", PARIS, PARIS, "≥ 0.99", "three words, so no run of four: that order counts as 1"),
    Example("BLEU, no smoothing", "bleu", "Привет мир", "До свидания луна", "≤ 0.1", options={"smoothing": False}),
    Example("ROUGE-L F", "rougeL", AI_SHORT, AI, "≥ 0.3", "{} where punctuation is a token", other={"tokenizer": "13a"}),
    Example("ROUGE-1 recall", "rouge1", FOX, "Быстрая бурая лиса перепрыгивает через ленивую собаку", "≥ 0.6", options={"mode": "recall"}),
    Example("ROUGE-2 precision", "rouge2", LEARNING, f"{LEARNING} и модели глубокого обучения", "≥ 0.5", options={"mode": "precision"}),
    Example("ROUGE-L F", "rougeL", "Быстрая коричневая лиса бежит.", f"{FOX}.", "0.55"),
    Example("ROUGE-1 F", "rouge1", ORDER, f"{FOX}.", "0.89", MISFIT + "all seven words are shared"),
    Example("ROUGE-L F", "rougeL", ORDER, f"{FOX}.", "0.56", MISFIT + "three of seven words stand in order"),
    Example("chrF", "chrf", FOX.replace("коричневая", "кричневая"), FOX, "≥ 0.9", "{} counting spaces", other=SPACED),
    Example("chrF++", "chrf", f"{LANGUAGE} увлекательна", f"{LANGUAGE} интересна и увлекательна", "≥ 0.7", options={"word_order": 2}),
    Example("chrF", "chrf", "бегущий быстро", "бежит быстро", "≥ 0.5", MISFIT + "{} counting spaces", other=SPACED),
    Example("chrF", "chrf", "организации предприятия учреждения", "организация предприятие учреждение", "0.85", MISFIT + "{} counting spaces", other=SPACED),
    Example("chrF", "chrf", "агенство аккомодация коммуникация", "агентство аккомодация коммуникация", "0.90", "{} counting spaces", other=SPACED),
    Example("Levenshtein", "string_similarity", "котёнок", "котенок", "≥ 0.8", options=EDITS),
    Example("Jaro-Winkler", "string_similarity", "МАРТА", "МАРФА", "≥ 0.8", "a substitution; the seed calls it a transposition"),
    Example("Levenshtein", "string_similarity", "Привет Мир", "привет мир", "insensitive > sensitive", "{} where capitals count", EDITS, {"case_sensitive": True}),
    Example("identical, ROUGE-L F", "rougeL", f"{FOX}.", f"{FOX}.", "1.00"),
    Example("identical, chrF", "chrf", f"{FOX}.", f"{FOX}.", "1.00"),
)  # fmt: skip


def render() -> str:
    """Return the whole of docs/metrics.md."""
    parts = {
        "goals": _table(("You want to know", "по-русски", "Read"), map(_goal_row, GOALS)),
        "overview": _table(
            ("Metrics", "Tiers", "Range", "Better", "Grades"), map(_overview_row, _families(METRICS.values()))
        ),
        "metrics": "\n".join(_sections()),
        "people": people(),
        "examples": _table(("Metric", "Hypothesis / reference", "Seed", "Value", "Note"), _example_rows()),
    }
    return _fill(PROSE, parts)


def _fill(template: Path, parts: Mapping[str, str]) -> str:
    """Return a page with the parts in the places of their marks."""
    page = template.read_text(encoding="utf-8")
    for name, content in parts.items():
        page = page.replace(f"<!-- {name} -->", content)
    return page


def render_judge() -> str:
    """Return docs/judge.md with the table of the kinds of answers in an exam between its marks."""
    page = JUDGE.read_text(encoding="utf-8")
    return re.sub("(<!-- kinds -->).*?(?=<!-- end -->)", rf"\1\n\n{_kinds()}\n\n", page, flags=re.DOTALL)


def _kinds() -> str:
    rows = [
        (
            f"`{name}`",
            translations("exam_kinds", name)["en"],
            ", ".join(sorted(of.damaged)),
            ", ".join(sorted(of.sound)),
        )
        for name, of in EXAMINED.items()
    ]
    return _table(("Kind", "What it is", "Must lower", "Must not lower"), rows)


def render_simulations() -> str:
    """Return the whole of docs/simulations.md."""
    page = SIMULATIONS_PROSE.read_text(encoding="utf-8")
    return re.sub(r"<!-- (?P<unit>% )?(?P<area>\w+): (?P<what>.+?) -->", _simulated_figures, page)


def _simulated_figures(mark: re.Match[str]) -> str:
    """Return the lowest and the highest figure of the claims that a mark names, and the promised range."""
    claims = [claim for claim in SIMULATED[mark["area"]] if re.search(mark["what"], claim["what"])]
    low, high, measured = ([claim[key] for claim in claims] for key in ("low", "high", "measured"))
    scale, unit = (100, " %") if mark["unit"] else (1, "")

    def show(low: float, high: float) -> str:
        return " to ".join(dict.fromkeys(f"{scale * value:.3g}" for value in (low, high))) + unit

    is_promised = not mark["unit"] or (min(low), max(high)) != (0, 1)
    promise = f"promised: {show(min(low), max(high))}" if is_promised else "not promised"
    missed = "" if all(claim["holds"] for claim in claims) else ", missed"
    return f"**{show(min(measured), max(measured))}** ({promise}{missed})"


def render_simulation_tables() -> dict[str, str]:
    """Return the page of every area, by file name."""
    return {f"{area}.md": _simulation_table(area) for area in SIMULATED}


def _simulation_table(area: str) -> str:
    rows = [
        (
            claim["what"],
            f"{claim['low']:g} to {claim['high']:g}",
            f"{claim['measured']:.3f}" + ("" if claim["holds"] else " (missed)"),
            f"{claim['repetitions']:,}",
        )
        for claim in SIMULATED[area]
    ]
    table = _table(("What", "Promised", "Measured", "Repetitions"), rows)
    return f"# Simulated situations: {area.replace('_', ' ')}\n\nSee [the claims](../simulations.md).\n\n{table}\n"


def people() -> str:
    """Return the table of how far metrics agree with people, best first."""
    shown = [("overall", "pearson"), ("overall", "spearman"), ("overall", "accuracy")]
    shown += [("correctness", "pearson"), ("completeness", "pearson")]
    rows = [
        (name, str(of["overall"]["n"]), *(_with_interval(of[question][kind]) for question, kind in shown))
        for name, of in sorted(PEOPLE.items(), key=lambda row: -row[1]["overall"]["pearson"][0])
    ]
    head = ("Metric", "Pairs", "Overall: Pearson", "Spearman", "Same preference", "Correctness", "Completeness")
    return _table(head, rows)


def _with_interval(value: list[float]) -> str:
    return "{:.2f} ({:.2f} to {:.2f})".format(*value)


def _follows(family: Iterable[Metric]) -> str:
    found = {row.name: PEOPLE[row.name]["overall"]["pearson"] for row in family if row.name in PEOPLE}
    return _each({name: f"Pearson {_with_interval(value)}" for name, value in found.items()}, " ") if found else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    # A bar inside a cell would end it.
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _goal_row(goal: Any) -> tuple[str, str, str]:
    english, russian = (texts("goals", language)[goal.key] for language in ("en", "ru"))
    return english, russian, ", ".join(f"`{name}`" for name in goal.metrics)


def _families(rows: Iterable[Metric]) -> Iterable[tuple[Metric, ...]]:
    """Neighbours that differ in k, percentile, probe or cell only."""

    def family(row: Metric) -> str:
        if row.formula == "count":
            return "asked" if row.name.endswith(("answered", "refused")) else "confusion"
        return row.name.split("@")[0].removesuffix("_p50").removesuffix("_p95").split("bias_")[0]

    return (tuple(found) for _, found in groupby(rows, key=family))


def _overview_row(family: tuple[Metric, ...]) -> tuple[str, ...]:
    row, graded = family[0], [row for row in family if row.thresholds]
    better = row.better if all(other.better == row.better for other in family) else "see below"
    names = ", ".join(f"`{row.name}`" for row in family)
    tiers = ", ".join(_title(tier).split(":")[0] for tier in row.tiers)
    grades = ", ".join(f"`{row.name}`: {' / '.join(f'{bound:g}' for bound in row.thresholds or ())}" for row in graded)
    return names, tiers, _range(row), better, grades


def _example_rows() -> Iterable[tuple[str, ...]]:
    for example in EXAMPLES:
        note = example.note.format(f"{example.value(**example.other):.3f}") if example.other else example.note
        pair = f"{example.hypothesis} / {example.reference}"
        yield example.label, pair, example.seed, f"{example.value():.3f}", note
    tenth = float(text.perplexity([[log(0.1)] * 10])[0])
    yield "Perplexity", "ten words, each as likely as nine others", "10", f"{tenth:.1f}", ""


def _title(tier: str) -> str:
    return texts(f"tiers.{tier}", "en")["terminal"]


def _sections() -> Iterable[str]:
    """Every metric once, in the first tier that has it; a metric at several k under one heading."""
    for tier, row in TIERS.items():
        yield f"\n## {_title(tier)}\n\n{inspect.cleandoc(row.parameters.__doc__ or '')}\n"
        rows = metrics_for_tier(tier)
        if known := [row for row in rows if row.tiers[0] != tier]:
            yield "Also here, described above: " + ", ".join(f"`{row.name}`" for row in known) + ".\n"
        yield from map(_entry, _families(row for row in rows if row.tiers[0] == tier))


def _entry(family: tuple[Metric, ...]) -> str:
    """One heading: what is common from the first (or the graded) metric, how to read each."""
    row = next((row for row in family if row.thresholds), family[0])
    facts = {
        "Formula": row.formula,
        "Range": f"{_range(row)}; {_better(family)}",
        "Made by": f"{KINDS[row.kind]}; {AGGREGATES[row.aggregate]}; interval: {INTERVALS[row.interval]}",
        "Undefined (NULL)": row.undefined,
        "Trust": row.trust,
        "Follows people": _follows(family),
        "Reading": _each({row.name: row.reading for row in (row, *family)}, " "),
        "Grades": _grades(row),
        "Equals": row.equals,
        "Source": row.source,
        "Signature": f"`{row.signature}`",
        "Computed by": _function(row.function),
    }
    # Of what differs within the family, one is shown.
    own = {"Formula": "formula", "Equals": "equals", "Signature": "signature"}
    for key, attribute in own.items():
        if len({getattr(other, attribute) for other in family}) > 1:
            facts = {f"{key} of `{row.name}`" if known == key else known: fact for known, fact in facts.items()}
    names = ", ".join(f"`{row.name}`" for row in family)
    measures = _each({row.name: row.measures for row in family}, "\n")
    return f"### {names}\n\n{measures}\n\n" + "".join(f"- **{key}**: {fact}\n" for key, fact in facts.items() if fact)


def _each(texts: dict[str, str], between: str) -> str:
    """Return the text that all share, or the text of each with its name."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    lead = "- " if between == "\n" else ""
    return between.join(f"{lead}`{name}`: {words}" for name, words in texts.items())


def _range(row: Metric) -> str:
    return f"{row.low:g} to {row.high:g}".replace("inf", "∞")


def _better(family: tuple[Metric, ...]) -> str:
    words = {
        row.name: "neither direction is better" if row.better == "neither" else f"{row.better} is better"
        for row in family
    }
    return _each(words, ", ")


def _grades(row: Metric) -> str:
    """`below 0.5 attention, to 0.8 good, above excellent`, in both languages."""
    if row.thresholds is None:
        return ""
    english, russian = (texts("grades", language) for language in ("en", "ru"))
    words = [f"{english[step]} («{russian[step]}»)" for step in GRADE_LADDERS[len(row.thresholds)]]
    bounds = [f"below {row.thresholds[0]:g}", *(f"to {bound:g}" for bound in row.thresholds[1:])]
    return "; ".join(
        f"{word} {bound}" for word, bound in zip(words, [*bounds, f"above {row.thresholds[-1]:g}"], strict=True)
    )


def _function(name: str) -> str:
    """Return the signature of the function and the first paragraph of its docstring."""
    if not name:
        return ""
    module, function = name.split(".")
    found = getattr(importlib.import_module(f"yarus.metrics.{module}"), function)
    parameters = [_plain(parameter) for parameter in inspect.signature(found).parameters.values()]
    summary = (inspect.getdoc(found) or "").split("\n\n")[0].replace("\n", " ")
    return f"`yarus.metrics.{name}({', '.join(parameters)})`: {summary}"


def _plain(parameter: inspect.Parameter) -> str:
    given = parameter.default is not parameter.empty
    return f"{parameter.name}={parameter.default!r}" if given else parameter.name


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Replace all files of a folder.

    Args:
        folder: where they are.
        texts: file name -> content.
    """
    for path in folder.iterdir():
        path.unlink()
    for name, content in texts.items():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    import generate_json

    write_folder(generate_json.FOLDER, generate_json.render_schemas())
    generate_json.PAGE.write_text(generate_json.render_page(), encoding="utf-8")
    TARGET.write_text(render(), encoding="utf-8")
    SIMULATIONS.write_text(render_simulations(), encoding="utf-8")
    write_folder(SIMULATION_TABLES, render_simulation_tables())
    JUDGE.write_text(render_judge(), encoding="utf-8")
