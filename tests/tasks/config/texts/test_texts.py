"""Texts shown to people: complete in both languages, and all used."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from yarus.db.removal.retention import ERASED_NOTE
from yarus.deployments.prefect.home_server import StopResult
from yarus.deployments.upkeep.readiness import Missing
from yarus.flows.terminal.comparisons.comparison import PROVEN_VERDICTS
from yarus.flows.terminal.comparisons.gate import VERDICTS_BY_URGENCY
from yarus.metrics.exam_kinds import KINDS as EXAM_KINDS
from yarus.metrics.metric import GRADE_LADDERS
from yarus.metrics.table import GOALS, METRICS
from yarus.metrics.table.corrected import CORRECTED_SUFFIX
from yarus.tasks.cases.privacy.patterns import PersonalDataKind
from yarus.tasks.cases.vocabulary import TURN_STRATA, USER_STRATA, Status, Unit
from yarus.tasks.comparison import corrected_means, gate
from yarus.tasks.comparison.experiments.robustness import RATES
from yarus.tasks.comparison.explanation.explanation_schema import TopicsBy
from yarus.tasks.comparison.explanation.largest_changes import STAGES
from yarus.tasks.comparison.gate_verdicts import BaselineKind
from yarus.tasks.comparison.slices import SLICES
from yarus.tasks.config.texts import LANGUAGES, texts, translations
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.dataset.annotation_tables import judged_answers
from yarus.tasks.dataset.annotation_tables.columns import COLUMNS, YES_NO
from yarus.tasks.dataset.audit import KINDS
from yarus.tasks.dataset.corpus.chatter import KINDS as CHATTER
from yarus.tasks.dataset.corpus.profile import COUNTS as ADVISED
from yarus.tasks.dataset.labelling.plan import PlanBasis
from yarus.tasks.dataset.synthesis.generator import KINDS as MADE
from yarus.tasks.evaluation.corpus_versions import PAGE_CHANGES
from yarus.tasks.evaluation.findings.failures import FAILURE_STAGES
from yarus.tasks.evaluation.findings_schema import FeatureName, Outcome
from yarus.tasks.evaluation.judge_standing import CONCLUSIVE_OUTCOMES, JudgeStanding
from yarus.tasks.models.prompts import SHAPES
from yarus.tasks.report.comparisons import CHANGE_LISTS
from yarus.tasks.report.corpus_page import MAP_COLOURS
from yarus.tasks.report.entries import DETAIL_COLUMNS

ROOT = Path(__file__).parents[4]
RUSSIAN_ONLY = ("shared_hints", "metric_hints")
"""The English hints are in the table of metrics."""
GRADES = {grade for ladder in GRADE_LADDERS.values() for grade in ladder}
STATES = {"completed", "invalid", "failed", "cancelled", "running"}
VERDICTS = {"improved", "regressed", "changed", "no difference shown", "inconclusive", "not judged"}
TIER_TEXTS = {"title", "short", "question", "terminal", "sentence", "advice", "says"}
FACTS = ("number", "date", "time", "weekday", "money", "percent", "phone", "email", "url", "room", "code")
PARTICULAR = {
    "tier0": {"says apart"},
    "judge": {f"says {worth}" for worth in ("by chance", "beyond chance", "unclear", "one score")},
}
"""Sentences that tasks/evaluation/guidance.py selects by value."""
BAD_CONTEXTS = {name for names in RATES.values() for name in names}
SETTINGS = {"sut_label", "source", "labels", "metrics", "tier", "cases.sha256", "cases.name", "judge.model"}
SETTINGS |= {"sut", "retriever", "embedder", "embedder_identity", "reranker", "reranker_identity", "rerank_depth"}
SETTINGS |= {"generator", "generator_prompt", "corpus", "vectors", "unit", "k", "similarity_embedder"}
SETTINGS |= {"perturbation", "context_perturbation"}
"""Settings that comparisons name in words; others keep their setting names."""
BY_TABLE: dict[str, set[str]] = {
    **{f"tiers.{tier}": TIER_TEXTS | PARTICULAR.get(tier, set()) for tier in TIERS},
    "grades": GRADES,
    "goals": {goal.key for goal in GOALS},
    "metric_labels": {name for tier in TIERS.values() for name in tier.headlines},
    "failures": {*FAILURE_STAGES},
    "fates": {*PAGE_CHANGES},
    "explained_stages": {*STAGES},
    "explanation": {
        *(f"topics by {way}" for way in get_args(TopicsBy)),
        *(f"mostly {cause}" for cause in ("questions", "answers", "unclear")),
    },
    "standings": {*get_args(JudgeStanding)} - {"passed"},
    "exam": {*CONCLUSIVE_OUTCOMES, *get_args(Outcome)},
    "exam_kinds": {*EXAM_KINDS},
    "exam_slices": {"cyrillic", "latin", "other", "short", "long"},
    "states": STATES,
    "statuses": {*get_args(Status)},
    "strata": {"all", *USER_STRATA, *TURN_STRATA},
    "biases": {name for name in METRICS if name.startswith("bias_")},
    "notes": {ERASED_NOTE} | {f"twin {unit}s" for unit in get_args(Unit)},
    "incomplete": {"topic", *(f"{name} {way}" for name in get_args(FeatureName) for way in ("more", "less"))}
    - {"topic more", "topic less"},
    "terminal": {f"failed in {name}" for name in FAILURE_STAGES},
    "prune": {f"{whose} {what}" for whose in ("age", "user") for what in ("planned", "done", "nothing")},
    "readiness": {*get_args(Missing)},
    "deployments": {word for name in ("nightly", "sweep", "robustness") for word in (name, f"{name} tag")}
    | {"judge_pipeline tag"},
    "night": {"planned", "doubtful", "off"},
    "night_message": {"failed", "invalid", "regressed", "closed"},
    "gate": {gate.NO_BASELINE, gate.NOT_COMPARED, gate.NOTHING_IN_COMMON, gate.NOTHING_MEASURED, gate.FILLED}
    | {corrected_means.FEW_LABELS, corrected_means.OTHER_JUDGE}
    | {f"baseline {kind}" for kind in get_args(BaselineKind)}
    | {f"verdict {verdict}" for verdict in VERDICTS_BY_URGENCY},
    "lessons": {f"by {kind}" for kind in (*SLICES, "answer length")},
    "label_page": {f"asks {name}" for name, shape in SHAPES.items() if shape.form in ("score", "grade")}
    | {"asks rubric"},
    "labels": {f"by {basis}" for basis in get_args(PlanBasis)}
    | {"of others", "of its own", "few", "of results", "few results"},
    "annotation.judged_columns": {*judged_answers.COLUMNS},
    "dataset": {*KINDS, *(f"kind {kind}" for kind in MADE), *(f"field {field}" for field in (*YES_NO, "relevant"))}
    | {f"by {unit}" for unit in get_args(Unit)}
    | {"code email", "code phone", "code id", "code name"}
    | {f"code {name} yes and no" for name in ("ground_truth_show", "answerable")},
    "comparison": VERDICTS | {f"verdict {verdict}" for verdict in PROVEN_VERDICTS},
    "corpus": {*(f"kind {kind}" for kind in CHATTER), *(f"of which {name}" for name in ADVISED)},
    "slices": {*SLICES},
    "setting_names": SETTINGS,
    "sweep": BAD_CONTEXTS,
    "artifacts": VERDICTS | {"completed", "failed", "cancelled", "pass", "fail"},
    "annotation.columns": {*COLUMNS},
    "annotation.problems": {error.__name__ for error in (FileNotFoundError, PermissionError, IsADirectoryError)},
    "personal_data": {*get_args(PersonalDataKind)},
    "stop": {*get_args(StopResult)},
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
        *USER_STRATA,
        *TURN_STRATA,
        *STATES,
        *VERDICTS,
        *CHANGE_LISTS,
        *DETAIL_COLUMNS,
        "ranks",
        "latency",
        "not compared",
    }
    | {"months", "not found"}
    | {f"better {way}" for way in ("higher", "lower", "neither")}
    | {"used chunks", "used pages", *(f"slice {name}" for name in SLICES)},
}
"""Section -> keys that come from tables in the code and must exist."""
OTHER_FILES = {
    "guidance": "tasks/evaluation/guidance.py",
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
    "annotation.reasons": "tasks/dataset/annotation_tables/candidates.py",
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
"""Section -> further files that contain its keys literally."""
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
"""Prefixes that f-strings put before a name: `kept newest`, `webhook set`."""


def walk_sections(content: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Yield every section of a file with its texts; no section has both texts and sections."""
    if all(isinstance(value, str) for value in content.values()):
        yield place, content
    else:
        for name, inner in content.items():
            assert isinstance(inner, dict), f"{place}: {name} stands among sections"
            yield from walk_sections(inner, f"{place}.{name}" if place else name)


FILES = {language: ROOT / "tasks" / "config" / "texts" / f"{language}.toml" for language in LANGUAGES}
SECTIONS = {name: dict(walk_sections(tomllib.loads(path.read_text(encoding="utf-8")))) for name, path in FILES.items()}
SHARED = [name for name in SECTIONS["ru"] if not name.startswith(RUSSIAN_ONLY)]


@cache
def modules() -> dict[Path, ast.Module]:
    paths = [path for folder in ("flows", "tasks", "deployments") for path in (ROOT / folder).rglob("*.py")]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@cache
def requested_sections(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """Return the sections that a module requests, with the calls."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    text_calls = (call for call in calls if getattr(call.func, "id", "") in ("texts", "translations"))
    return [(str(call.args[0].value), call) for call in text_calls if isinstance(call.args[0], ast.Constant)]


@cache
def literals(tree: ast.Module) -> set[str]:
    """Return every string of a module, and the names of keyword arguments."""
    nodes = list(ast.walk(tree))
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return strings | {str(node.arg) for node in nodes if isinstance(node, ast.keyword)}


def literals_for(section: str) -> set[str]:
    """Return every string of the files that may request a text of the section."""
    trees = [
        tree for tree in modules().values() if section != "report.page" and section in dict(requested_sections(tree))
    ]
    paths = list(ROOT.glob(OTHER_FILES[section])) if section in OTHER_FILES else []
    trees += [modules()[path] for path in paths if path.suffix == ".py"]
    pages = "".join(path.read_text(encoding="utf-8") for path in paths if path.suffix != ".py")
    return {*re.findall(r"""["'`]([^"'`]+)(?=["'`])""", pages)}.union(*map(literals, trees))


def test_languages_have_equal_sections_keys_and_values() -> None:
    assert list(SECTIONS["en"]) == SHARED
    for name in SHARED:
        russian, english = (SECTIONS[language][name] for language in LANGUAGES)
        assert list(russian) == list(english), name
        for key, text in russian.items():
            values = [re.findall(r"\{(\w*)", text_version) for text_version in (text, english[key])]
            assert set(values[0]) == set(values[1]), (name, key)
            for text_version, n_forms in ((text, 3), (english[key], 2)):
                forms = re.findall(r"\{\w+:([^{}]*\|[^{}]*)\}", text_version)
                assert {len(words.split("|")) for words in forms} <= {n_forms}, (name, key)


@pytest.mark.parametrize("section", BY_TABLE)
def test_keys_from_code_tables_have_texts(section: str) -> None:
    assert BY_TABLE[section] <= SECTIONS["ru"][section].keys()


@pytest.mark.parametrize("section", SHARED)
def test_every_text_is_used(section: str) -> None:
    used = BY_TABLE.get(section, set()) | literals_for(section)
    short = [next((key.removeprefix(p) for p in PREFIXES if key.startswith(p)), key) for key in SECTIONS["ru"][section]]
    keys = zip(SECTIONS["ru"][section], short, strict=True)
    assert [key for key, short_key in keys if not {key, short_key, key.removesuffix(" question")} & used] == []


def test_requested_texts_exist() -> None:
    for path, tree in modules().items():
        requested = requested_sections(tree)
        assert {name for name, _ in requested} <= SECTIONS["ru"].keys(), path
        for name, call in requested:
            if getattr(call.func, "id", "") == "translations" and isinstance(key := call.args[1], ast.Constant):
                assert key.value in SECTIONS["ru"][name], (path, call.lineno)
        keys = {key for name, _ in requested for key in SECTIONS["ru"][name]}
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                if isinstance(node.value, ast.Name) and node.value.id == "words":
                    assert node.slice.value in keys, (path, node.lineno)
                for name, call in requested:
                    assert node.value is not call or node.slice.value in SECTIONS["ru"][name], (path, node.lineno)


def test_hints_match_metrics_and_shared_sentences() -> None:
    families = {form for name in METRICS for form in (name, f"{name.partition('@')[0]}@")}
    families |= {name.removesuffix(METRICS[name].opinion) for name in METRICS if name.startswith("exam_")} | {
        CORRECTED_SUFFIX
    }
    sections = {name: hint for name, hint in SECTIONS["ru"].items() if name.startswith("metric_hints.")}
    hints = {name.removeprefix("metric_hints."): hint for name, hint in sections.items()}
    assert hints.keys() <= families
    named = {name for hint in hints.values() for text in hint.values() for name in re.findall(r"\{(\w+)\}", text)}
    assert named - {"k", "prompt"} == SECTIONS["ru"]["shared_hints"].keys()


def test_translations_returns_every_language() -> None:
    assert translations("report.page", "seconds", n=3) == {"ru": "3 с", "en": "3 s"}


def test_missing_text_or_section_is_named() -> None:
    with pytest.raises(LookupError, match=r"^no text 'tear' in \[tiers.tier1\] of tasks/config/texts/en.toml$"):
        texts("tiers.tier1", "en")["tear"]
    with pytest.raises(LookupError, match=r"^no section \[tiers.tear\] in tasks/config/texts/ru.toml$"):
        texts("tiers.tear", "ru")


def test_grades_have_texts_in_both_languages() -> None:
    assert [texts("grades", "ru")[step] for step in GRADE_LADDERS[2]] == ["Требует внимания", "Хорошо", "Отлично"]
    assert [texts("grades", "en")[step] for step in GRADE_LADDERS[2]] == ["Needs attention", "Good", "Excellent"]
    assert SECTIONS["ru"]["grades"].keys() == GRADES
