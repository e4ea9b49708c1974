"""Prompts: text files with `$variables`, one folder a language, a user's own in their place.

Untrusted text (questions, contexts, answers) is put between tags that carry a code which occurs in none of the texts
of that prompt, so that no text can close its own tag and speak to the model from outside. Several texts of one variable
stand each between tags of its own.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Literal

from yarus.db.errors import InputError, unknown
from yarus.db.words import Words
from yarus.metrics.metric import RUBRIC
from yarus.tasks.config.settings import Language, Settings
from yarus.tasks.models.prompts.rubrics import Rubric, read_rubric

Form = Literal["score", "grade", "claims", "support", "nuggets", "nugget_support", "word", "text"]
Text = str | Mapping[str, str]
"""What fills a variable: one text, or several by their labels."""
FOLDER = Path(__file__).parent
VERBATIM = "_verbatim"  # $answer_verbatim: without tags, for a prompt that must equal production's to the letter
MARK = "mark"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a prompt is for: who reads it, what it asks for, and the texts that it is filled with."""

    role: Literal["generator", "judge", "gate"]
    form: Form
    variables: tuple[str, ...]
    needs: str  # the text without which the prompt makes no sense


SHAPES = {
    "faithfulness": Shape("judge", "score", ("question", "context", "answer"), "answer"),
    "answer_relevance": Shape("judge", "score", ("question", "answer"), "answer"),
    "answer_correctness": Shape("judge", "score", ("question", "reference", "answer"), "answer"),
    "e2e_score": Shape("judge", "score", ("question", "reference", "answer"), "answer"),
    "follow_up": Shape("judge", "score", ("history", "question", "answer"), "answer"),
    "relevance": Shape("judge", "grade", ("question", "passage"), "passage"),
    "claims": Shape("judge", "claims", ("sentences",), "sentences"),
    "support": Shape("judge", "support", ("sources", "claims"), "claims"),
    "nuggets": Shape("judge", "nuggets", ("question", "reference", "passages"), "reference"),
    "nugget_support": Shape("judge", "nugget_support", ("question", "answer", "nuggets"), "nuggets"),
    "gate": Shape("gate", "word", ("question", "context", "answer"), "answer"),
    "generation": Shape("generator", "text", ("question", "context"), "question"),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that is ready to be filled."""

    name: str
    shape: Shape
    template: str
    repair: str  # what is said when the reply cannot be read

    @property
    def digest(self) -> str:
        """Hash of the wording, stored with every verdict and part of the comparability key."""
        return hashlib.sha256(f"{self.template}\0{self.repair}".encode()).hexdigest()[:16]

    def fill(self, texts: Mapping[str, Text]) -> str:
        """The prompt with the texts in it, each between tags that it cannot close.

        Args:
            texts: variable -> text, or texts by label; variables that the prompt does not use are ignored.

        Raises:
            KeyError: a variable of the prompt is missing.
        """
        used = {name: texts[name] for name in self.shape.variables if name in texts}
        mark = _mark(self.template, used)
        values = {MARK: mark}
        for name, text in used.items():
            parts = {name: text} if isinstance(text, str) else text
            values[name] = "\n".join(f"<{tag}-{mark}>\n{part}\n</{tag}-{mark}>" for tag, part in parts.items())
            values[name + VERBATIM] = text if isinstance(text, str) else "\n".join(text.values())
        return Template(self.template).substitute(values)


def prompts(settings: Settings) -> dict[str, Prompt]:
    """All prompts by name: ours in the language of the settings, the user's own in their place, and the rubrics.

    Raises:
        InputError: a file of the user's own cannot be used.
    """
    language = settings.language
    repair = _ours(language, "repair")
    own = _repaired(language)
    found = {name: Prompt(name, shape, _ours(language, name), own[name]) for name, shape in SHAPES.items()}
    for role, path in (("generator", settings.generator.prompt), ("gate", settings.gate.prompt)):
        if path is not None:
            (name,) = (name for name, shape in SHAPES.items() if shape.role == role)
            found[name] = _own(path, name, own[name])
    if settings.judge.prompt is not None:
        found.update(_own_of_judge(settings.judge.prompt, own))
    for name, rubric in rubrics(settings).items():
        shape = Shape("judge", "score", rubric.variables, "answer")
        found[name] = Prompt(name, shape, _rubric_template(rubric, language), repair)
    return found


def rubrics(settings: Settings) -> dict[str, Rubric]:
    """The user's own judged metrics by the column that each gets: `rubric_politeness`.

    Raises:
        InputError: a file cannot be used, or two bear one name.
    """
    found: dict[str, Rubric] = {}
    for path in _files(settings.rubrics) if settings.rubrics else ():
        rubric = read_rubric(path)
        if f"{RUBRIC}{rubric.name}" in found:
            raise InputError(
                "{path}: the name {name!r} is taken by another rubric; choose another one", path=path, name=rubric.name
            )
        found[f"{RUBRIC}{rubric.name}"] = rubric
    return found


def _ours(language: Language, name: str) -> str:
    return (FOLDER / language / f"{name}.txt").read_text(encoding="utf-8")


def _repaired(language: Language) -> dict[str, str]:
    """What is said when the reply to a prompt cannot be read, by its name: each form of reply has words of its own."""
    forms = {shape.form for shape in SHAPES.values()} - {"score", "word", "text"}
    of_form = {form: _ours(language, f"repair_{form}") for form in sorted(forms)}
    return {name: of_form.get(shape.form, _ours(language, "repair")) for name, shape in SHAPES.items()}


def _own_of_judge(path: Path, repairs: Mapping[str, str]) -> dict[str, Prompt]:
    """A folder or file replaces the prompts of the files' names; a file of another name those with its variables."""
    judged = {name: shape for name, shape in SHAPES.items() if shape.role == "judge"}
    if path.is_dir():
        files = {file.stem: file for file in _files(path)}
        if others := sorted(files.keys() - judged.keys()):
            raise unknown(
                "prompt",
                others[0],
                judged,
                hint=Words("(the files of {path} must be named after the prompts that they replace)", path=path),
            )
        return {name: _own(file, name, repairs[name]) for name, file in files.items()}
    used = _identifiers(_text(path), path)
    names = [path.stem] if path.stem in judged else [n for n, shape in judged.items() if used == {*shape.variables}]
    if not names:
        raise InputError(
            "{path}: its variables ({used}) do not tell which of the judge's prompts it replaces. Name the file "
            "after the prompt: {judged}",
            path=path,
            used=", ".join(sorted(used)),
            judged=", ".join(f"{name}.txt" for name in judged),
        )
    return {name: _own(path, name, repairs[name]) for name in names}


def _own(path: Path, name: str, repair: str) -> Prompt:
    shape, text = SHAPES[name], _text(path)
    used = _identifiers(text, path)
    if others := sorted(used - {*shape.variables}):
        raise unknown(
            Words("variable of the prompt {name!r}", name=name),
            others[0],
            shape.variables,
            hint=Words("({path})", path=path),
        )
    if shape.needs not in used:
        raise InputError("{path}: the prompt {name!r} must contain ${needs}", path=path, name=name, needs=shape.needs)
    return Prompt(name, shape, text, repair)


def _identifiers(text: str, path: Path) -> set[str]:
    template = Template(text)
    if not template.is_valid():
        raise InputError("{path}: a $ that begins no variable; write $$ for a literal $", path=path)
    return {name.removesuffix(VERBATIM) for name in template.get_identifiers()} - {MARK}


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError("{folder}: no such folder", folder=folder)
    return sorted(folder.glob("*.txt"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else Words("not UTF-8")
        raise InputError("the prompt file {path} cannot be read: {reason}", path=path, reason=reason) from error


def _rubric_template(rubric: Rubric, language: Language) -> str:
    """The language's frame for rubrics, with the paragraphs of those texts that the rubric is judged by."""
    texts = {name for shape in SHAPES.values() for name in shape.variables}
    unused = tuple(f"${name}" for name in texts - {*rubric.variables})
    kept = [part for part in _ours(language, "rubric").split("\n\n") if not any(name in part for name in unused)]
    # A $ in the user's words is a sign, not a variable.
    criterion, anchors = (text.replace("$", "$$") for text in (rubric.question, rubric.scale))
    return "\n\n".join(kept).replace("$criterion", criterion).replace("$anchors", anchors)


def _mark(template: str, texts: Mapping[str, Text]) -> str:
    """A code that no text contains; the same for the same texts, because the call store goes by the prompt's hash."""
    several = (texts[name] for name in sorted(texts))
    parts = (part for text in several for part in ([text] if isinstance(text, str) else text.values()))
    everything = "\0".join((template, *parts))
    code = hashlib.sha256(everything.encode("utf-8", "surrogatepass")).hexdigest()
    while (mark := code[:8]) in everything:
        code = hashlib.sha256(code.encode()).hexdigest()
    return mark
