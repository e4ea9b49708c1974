"""The words that people read: complete in both languages, and none that nobody asks for."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from yarus.db.removal.retention import ERASED
from yarus.deployments.prefect.home_server import Stopped
from yarus.deployments.upkeep.readiness import Missing
from yarus.metrics.exam_kinds import KINDS as EXAM_KINDS
from yarus.metrics.metric import LADDERS
from yarus.metrics.table import GOALS, METRICS
from yarus.metrics.table.corrected import SUFFIX
from yarus.tasks.cases.privacy.patterns import Kind
from yarus.tasks.cases.vocabulary import STRATA, TURNS, Status, Unit
from yarus.tasks.comparison import corrected_means, gate
from yarus.tasks.comparison.experiments.robustness import RATES
from yarus.tasks.comparison.explanation.explanation_schema import TopicsBy
from yarus.tasks.comparison.explanation.largest import STAGES
from yarus.tasks.comparison.gate_verdicts import BaselineKind
from yarus.tasks.comparison.slices import SLICES
from yarus.tasks.config.texts import LANGUAGES, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.dataset.annotation import judged_answers
from yarus.tasks.dataset.annotation.columns import COLUMNS, YES_NO
from yarus.tasks.dataset.audit import KINDS
from yarus.tasks.dataset.corpus.chatter import KINDS as CHATTER
from yarus.tasks.dataset.corpus.profile import COUNTS as ADVISED
from yarus.tasks.dataset.labelling.plan import Basis
from yarus.tasks.dataset.synthesis.generator import KINDS as MADE
from yarus.tasks.evaluation.corpus_versions import FATES
from yarus.tasks.evaluation.findings.failures import FAILURES
from yarus.tasks.evaluation.findings_schema import FeatureName, Outcome
from yarus.tasks.evaluation.standings import CONCLUSIVE, Standing
from yarus.tasks.models.prompts import SHAPES
from yarus.tasks.report.comparisons import LISTS
from yarus.tasks.report.corpus_page import MAP_COLOURS
from yarus.tasks.report.entries import FOOT

ROOT = Path(__file__).parents[4]
RUSSIAN_ONLY = ("shared_hints", "metric_hints")
"""The English of the hints stands in the table of metrics."""
GRADES = {grade for ladder in LADDERS.values() for grade in ladder}
STATES = {"completed", "invalid", "failed", "cancelled", "running"}
VERDICTS = {"improved", "regressed", "changed", "no difference shown", "inconclusive"}
TIER_TEXTS = {"title", "short", "question", "terminal", "sentence", "advice", "says"}
FACTS = ("number", "date", "time", "weekday", "money", "percent", "phone", "email", "url", "room", "code")
PARTICULAR = {
    "tier0": {"says apart"},
    "judge": {f"says {worth}" for worth in ("by chance", "beyond chance", "unclear", "one score")},
}
"""Sentences that tasks/evaluation/guidance.py chooses by the values."""
BAD_CONTEXTS = {name for names in RATES.values() for name in names}
SETTINGS = {"sut_label", "source", "labels", "metrics", "tier", "cases.sha256", "cases.name", "judge.model"}
SETTINGS |= {"sut", "retriever", "embedder", "embedder_identity", "reranker", "reranker_identity", "rerank_depth"}
SETTINGS |= {"generator", "generator_prompt", "corpus", "vectors", "unit", "k", "similarity_embedder"}
SETTINGS |= {"perturbation", "context_perturbation"}
"""What comparisons name in words; anything else by the name that it is set by."""
BY_TABLE: dict[str, set[str]] = {
    **{f"tiers.{tier}": TIER_TEXTS | PARTICULAR.get(tier, set()) for tier in TIERS},
    "grades": GRADES,
    "goals": {goal.key for goal in GOALS},
    "metric_labels": {name for tier in TIERS.values() for name in tier.headlines},
    "failures": {*FAILURES},
    "fates": {*FATES},
    "explained_stages": {*STAGES},
    "explanation": {f"topics by {way}" for way in get_args(TopicsBy)},
    "standings": {*get_args(Standing)} - {"passed"},
    "exam": {*CONCLUSIVE, *get_args(Outcome)},
    "exam_kinds": {*EXAM_KINDS},
    "exam_slices": {"cyrillic", "latin", "other", "short", "long"},
    "states": STATES,
    "statuses": {*get_args(Status)},
    "strata": {"all", *STRATA, *TURNS},
    "biases": {name for name in METRICS if name.startswith("bias_")},
    "notes": {ERASED} | {f"twin {unit}s" for unit in get_args(Unit)},
    "incomplete": {"topic", *(f"{name} {way}" for name in get_args(FeatureName) for way in ("more", "less"))}
    - {"topic more", "topic less"},
    "terminal": {f"failed in {name}" for name in FAILURES},
    "prune": {f"{whose} {what}" for whose in ("age", "user") for what in ("planned", "done", "nothing")},
    "readiness": {*get_args(Missing)},
    "deployments": {word for name in ("nightly", "sweep", "robustness") for word in (name, f"{name} tag")}
    | {"judge_pipeline tag"},
    "night": {"planned", "doubtful", "off"},
    "night_message": {"failed", "invalid", "regressed", "closed"},
    "gate": {gate.NO_BASELINE, gate.NOT_COMPARED, gate.NOTHING_IN_COMMON, gate.NOTHING_MEASURED, gate.FILLED}
    | {corrected_means.FEW_LABELS, corrected_means.OTHER_JUDGE}
    | {f"baseline {kind}" for kind in get_args(BaselineKind)},
    "lessons": {f"by {kind}" for kind in (*SLICES, "answer length")},
    "label_page": {f"asks {name}" for name, shape in SHAPES.items() if shape.form in ("score", "grade")}
    | {"asks rubric"},
    "labels": {f"by {basis}" for basis in get_args(Basis)}
    | {"of others", "of its own", "few", "of results", "few results"},
    "annotation.judged_columns": {*judged_answers.COLUMNS},
    "dataset": {*KINDS, *(f"kind {kind}" for kind in MADE), *(f"field {field}" for field in (*YES_NO, "relevant"))}
    | {f"by {unit}" for unit in get_args(Unit)}
    | {"code email", "code phone", "code id", "code name"}
    | {f"code {name} yes and no" for name in ("ground_truth_show", "answerable")},
    "comparison": VERDICTS,
    "corpus": {*(f"kind {kind}" for kind in CHATTER), *(f"of which {name}" for name in ADVISED)},
    "slices": {*SLICES},
    "setting_names": SETTINGS,
    "sweep": BAD_CONTEXTS,
    "artifacts": VERDICTS | {"completed", "failed", "cancelled", "pass", "fail"},
    "annotation.columns": {*COLUMNS},
    "annotation.problems": {error.__name__ for error in (FileNotFoundError, PermissionError, IsADirectoryError)},
    "personal_data": {*get_args(Kind)},
    "stop": {*get_args(Stopped)},
    "report.statuses": {*get_args(Status)},
    "report.script": {*(f"map {name}" for name in MAP_COLOURS), *(f"fact {kind}" for kind in FACTS)}
    | {f"source {name}" for name in ("reference", "answer", "passage", "page")}
    | {f"claims {side}" for side in ("answer", "reference")}
    | {f"had {much}" for much in ("full", "partial", "none", "unknown")}
    | {f"page {told}" for told in ("missing", "unknown", "supports", "none")},
    "report.live": {f"page {told}" for told in ("changed", "gone")},
    "report.trace": {f"step {name}" for name in ("found", "asked", "replied", "judged")},
    "report.page": {
        *(f"compared {kind}" for kind in ("questions", "answers", "texts")),
        "all",
        *STRATA,
        *TURNS,
        *STATES,
        *VERDICTS,
        *LISTS,
        *FOOT,
        "ranks",
        "latency",
        "not compared",
    }
    | {"months", "not found"}
    | {f"better {way}" for way in ("higher", "lower", "neither")}
    | {"used chunks", "used pages", *(f"slice {name}" for name in SLICES)},
}
"""Section -> keys that come from tables of the code; they must be there, whatever else is."""
ELSEWHERE = {
    "notes": "tasks/**/*.py",
    "prune": "deployments/upkeep/**/*.py",
    "alerts": "deployments/alarms/incidents.py",
    "incidents": "deployments/alarms/incidents.py",
    "nightly_remarks": "deployments/alarms/levels.py",
    "slice_values": "tasks/comparison/slices.py",
    "gate": "tasks/comparison/gate*.py",
    "trend": "tasks/comparison/bands.py",
    "sweep": "tasks/config/factors.py",
    "people_pairs": "tasks/comparison/experiments/people_pairs.py",
    "exam": "tasks/report/templates/*.html",
    "explanation": "tasks/report/templates/*.html",
    "lessons": "tasks/report/templates/labels.html",
    "label_page": "deployments/pages/label.js",
    "dataset": "tasks/dataset/**/*.py",
    "annotation.reasons": "tasks/dataset/annotation/candidates.py",
    "annotation.problems": "tasks/dataset/**/*.py",
    "report.experiments": "tasks/config/factors.py",
    "report.page": "tasks/report/templates/*.html",
    "report.script": "tasks/report/templates/*.js",
    "statements": "tasks/report/templates/overview.html",
    "report.live": "tasks/report/templates/*.js",
    "report.answers": "tasks/report/templates/*",
    "report.trace": "tasks/report/templates/trace.js",
    "progress": "tasks/evaluation/batches.py",
}
"""Section -> files beside the module that asks for it, in which its keys stand as they are."""
PREFIXES = (
    "alone ",
    "age ",
    "user ",
    "kept ",
    "webhook ",
    "kind ",
    "rejected ",
    "field ",
    "place ",
    "code ",
    "map ",
    "fact ",
)
"""What f-strings put before a name: `kept newest`, `webhook set`."""


def sections(found: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Every section of a file with its texts; none has both texts and sections."""
    if all(isinstance(value, str) for value in found.values()):
        yield place, found
    else:
        for name, inner in found.items():
            assert isinstance(inner, dict), f"{place}: {name} stands among sections"
            yield from sections(inner, f"{place}.{name}" if place else name)


FILES = {language: ROOT / "tasks" / "config" / "texts" / f"{language}.toml" for language in LANGUAGES}
SECTIONS = {name: dict(sections(tomllib.loads(path.read_text(encoding="utf-8")))) for name, path in FILES.items()}
SHARED = [name for name in SECTIONS["ru"] if not name.startswith(RUSSIAN_ONLY)]


@cache
def modules() -> dict[Path, ast.Module]:
    found = [path for folder in ("flows", "tasks", "deployments") for path in (ROOT / folder).rglob("*.py")]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in found}


@cache
def asked(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """The sections that a module names."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    named = (call for call in calls if getattr(call.func, "id", "") in ("texts", "translations"))
    return [(str(call.args[0].value), call) for call in named if isinstance(call.args[0], ast.Constant)]


@cache
def literals(tree: ast.Module) -> set[str]:
    """Every string of a module, and the names of arguments."""
    nodes = list(ast.walk(tree))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return strings | {str(node.arg) for node in nodes if isinstance(node, ast.keyword)}


def said_in(section: str) -> set[str]:
    """Every string of the files that may ask for a text of the section."""
    trees = [tree for tree in modules().values() if section != "report.page" and section in dict(asked(tree))]
    paths = list(ROOT.glob(ELSEWHERE[section])) if section in ELSEWHERE else []
    trees += [modules()[path] for path in paths if path.suffix == ".py"]
    pages = "".join(path.read_text(encoding="utf-8") for path in paths if path.suffix != ".py")
    return {*re.findall(r"""["'`]([^"'`]+)(?=["'`])""", pages)}.union(*map(literals, trees))


def test_both_languages_have_the_same_sections_keys_and_values() -> None:
    assert list(SECTIONS["en"]) == SHARED
    for name in SHARED:
        russian, english = (SECTIONS[language][name] for language in LANGUAGES)
        assert list(russian) == list(english), name
        for key, text in russian.items():
            values = [re.findall(r"\{(\w*)", one) for one in (text, english[key])]
            assert set(values[0]) == set(values[1]), (name, key)
            for one, n_forms in ((text, 3), (english[key], 2)):
                forms = re.findall(r"\{\w+:([^{}]*\|[^{}]*)\}", one)
                assert {len(words.split("|")) for words in forms} <= {n_forms}, (name, key)


@pytest.mark.parametrize("section", BY_TABLE)
def test_what_the_code_has_a_table_of_has_its_texts(section: str) -> None:
    assert BY_TABLE[section] <= SECTIONS["ru"][section].keys()


@pytest.mark.parametrize("section", SHARED)
def test_no_text_is_left_that_nobody_asks_for(section: str) -> None:
    known = BY_TABLE.get(section, set()) | said_in(section)
    bare = [next((key.removeprefix(p) for p in PREFIXES if key.startswith(p)), key) for key in SECTIONS["ru"][section]]
    keys = zip(SECTIONS["ru"][section], bare, strict=True)
    assert [key for key, rest in keys if not {key, rest, key.removesuffix(" question")} & known] == []


def test_no_text_is_missing_that_is_asked_for_by_its_name() -> None:
    for path, tree in modules().items():
        there = asked(tree)
        assert {name for name, _ in there} <= SECTIONS["ru"].keys(), path
        for name, call in there:
            if getattr(call.func, "id", "") == "translations" and isinstance(key := call.args[1], ast.Constant):
                assert key.value in SECTIONS["ru"][name], (path, call.lineno)
        keys = {key for name, _ in there for key in SECTIONS["ru"][name]}
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                if isinstance(node.value, ast.Name) and node.value.id == "words":
                    assert node.slice.value in keys, (path, node.lineno)
                for name, call in there:
                    assert node.value is not call or node.slice.value in SECTIONS["ru"][name], (path, node.lineno)


def test_every_hint_fits_a_metric_and_names_sentences_that_are_there() -> None:
    families = {form for name in METRICS for form in (name, f"{name.partition('@')[0]}@")}
    families |= {name.removesuffix(METRICS[name].opinion) for name in METRICS if name.startswith("exam_")} | {SUFFIX}
    there = {name: found for name, found in SECTIONS["ru"].items() if name.startswith("metric_hints.")}
    hints = {name.removeprefix("metric_hints."): found for name, found in there.items()}
    assert hints.keys() <= families
    named = {name for found in hints.values() for text in found.values() for name in re.findall(r"\{(\w+)\}", text)}
    assert named - {"k", "prompt"} == SECTIONS["ru"]["shared_hints"].keys()


def test_a_text_in_every_language() -> None:
    assert translations("report.page", "seconds", n=3) == {"ru": "3 с", "en": "3 s"}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(LookupError, match=r"^no text 'tear' in \[tiers.tier1\] of tasks/config/texts/en.toml$"):
        texts("tiers.tier1", "en")["tear"]
    with pytest.raises(LookupError, match=r"^no section \[tiers.tear\] in tasks/config/texts/ru.toml$"):
        texts("tiers.tear", "ru")


def test_grades_are_shown_in_both_languages() -> None:
    assert [texts("grades", "ru")[step] for step in LADDERS[2]] == ["Требует внимания", "Хорошо", "Отлично"]
    assert [texts("grades", "en")[step] for step in LADDERS[2]] == ["Needs attention", "Good", "Excellent"]
    assert SECTIONS["ru"]["grades"].keys() == GRADES
