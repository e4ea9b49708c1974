"""Prompts: text files with `$variables`, one folder per language; a user's files replace them.

Untrusted text (questions, contexts, answers) is put between tags. The tags carry a code that occurs in none of the
texts of that prompt, so that no text can close its own tag and address the model. Each of several texts of one variable
has its own tags.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Literal

from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words
from yarus.metrics.metric import RUBRIC_PREFIX
from yarus.tasks.config.settings import Language, Settings
from yarus.tasks.models.prompts.rubrics import Rubric, read_rubric

ReplyForm = Literal["score", "grade", "claims", "support", "nuggets", "nugget_support", "word", "text"]
VariableValue = str | Mapping[str, str]
"""Value of a variable: one text, or several by their labels."""
PROMPTS_FOLDER = Path(__file__).parent
VERBATIM = "_verbatim"  # $answer_verbatim: without tags, for a prompt that must equal production's to the letter
MARK = "mark"


@dataclass(frozen=True, slots=True)
class PromptShape:
    """Purpose of a prompt: its reader, the form of the reply, and the texts that fill it."""

    role: Literal["generator", "judge", "gate"]
    form: ReplyForm
    variables: tuple[str, ...]
    needs: str  # the text without which the prompt makes no sense


SHAPES = {
    "faithfulness": PromptShape("judge", "score", ("question", "context", "answer"), "answer"),
    "answer_relevance": PromptShape("judge", "score", ("question", "answer"), "answer"),
    "answer_correctness": PromptShape("judge", "score", ("question", "reference", "answer"), "answer"),
    "e2e_score": PromptShape("judge", "score", ("question", "reference", "answer"), "answer"),
    "follow_up": PromptShape("judge", "score", ("history", "question", "answer"), "answer"),
    "relevance": PromptShape("judge", "grade", ("question", "passage"), "passage"),
    "claims": PromptShape("judge", "claims", ("sentences",), "sentences"),
    "support": PromptShape("judge", "support", ("sources", "claims"), "claims"),
    "nuggets": PromptShape("judge", "nuggets", ("question", "reference", "passages"), "reference"),
    "nugget_support": PromptShape("judge", "nugget_support", ("question", "answer", "nuggets"), "nuggets"),
    "gate": PromptShape("gate", "word", ("question", "context", "answer"), "answer"),
    "generation": PromptShape("generator", "text", ("question", "context"), "question"),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt that is ready to be filled."""

    name: str
    shape: PromptShape
    template: str
    repair: str  # the message after an unreadable reply

    @property
    def digest(self) -> str:
        """Return the hash of the wording, which is stored with every verdict and part of the comparability key."""
        return hashlib.sha256(f"{self.template}\0{self.repair}".encode()).hexdigest()[:16]

    def fill(self, texts: Mapping[str, VariableValue]) -> str:
        """Return the prompt with the texts in it, each between tags that it cannot close.

        Args:
            texts: variable -> text, or texts by label; variables that the prompt does not use are ignored.

        Raises:
            KeyError: a variable of the prompt is missing.
        """
        used = {name: texts[name] for name in self.shape.variables if name in texts}
        mark = _make_mark(self.template, used)
        values = {MARK: mark}
        for name, text in used.items():
            parts = {name: text} if isinstance(text, str) else text
            values[name] = "\n".join(f"<{tag}-{mark}>\n{part}\n</{tag}-{mark}>" for tag, part in parts.items())
            values[name + VERBATIM] = text if isinstance(text, str) else "\n".join(text.values())
        return Template(self.template).substitute(values)


def read_prompts(settings: Settings) -> dict[str, Prompt]:
    """Return all prompts by name: Yarus's in the language of the settings, the user's replacements, and the rubrics.

    Raises:
        InputError: a user's file cannot be used.
    """
    language = settings.text_language
    repair = _read_own(language, "repair")
    repairs = _load_repairs(language)
    by_name = {name: Prompt(name, shape, _read_own(language, name), repairs[name]) for name, shape in SHAPES.items()}
    for role, path in (("generator", settings.generator.prompt), ("gate", settings.production_judge.prompt)):
        if path is not None:
            (name,) = (name for name, shape in SHAPES.items() if shape.role == role)
            by_name[name] = _load_user_prompt(path, name, repairs[name])
    if settings.judge.prompt is not None:
        by_name.update(_load_judge_prompts(settings.judge.prompt, repairs))
    for name, rubric in load_rubrics(settings).items():
        shape = PromptShape("judge", "score", rubric.variables, "answer")
        by_name[name] = Prompt(name, shape, _rubric_template(rubric, language), repair)
    return by_name


def load_rubrics(settings: Settings) -> dict[str, Rubric]:
    """Return the user's judged metrics by their column, such as `rubric_politeness`.

    Raises:
        InputError: a file cannot be used, or two have the same name.
    """
    rubrics_by_column: dict[str, Rubric] = {}
    for path in _list_files(settings.rubrics) if settings.rubrics else ():
        rubric = read_rubric(path)
        if f"{RUBRIC_PREFIX}{rubric.name}" in rubrics_by_column:
            raise InputError(
                "{path}: the name {name!r} is taken by another rubric; choose another one", path=path, name=rubric.name
            )
        rubrics_by_column[f"{RUBRIC_PREFIX}{rubric.name}"] = rubric
    return rubrics_by_column


def _read_own(language: Language, name: str) -> str:
    return (PROMPTS_FOLDER / language / f"{name}.txt").read_text(encoding="utf-8")


def _load_repairs(language: Language) -> dict[str, str]:
    """Return the message after an unreadable reply, by prompt; each form of reply has its own."""
    forms = {shape.form for shape in SHAPES.values()} - {"score", "word", "text"}
    repair_by_form = {form: _read_own(language, f"repair_{form}") for form in sorted(forms)}
    return {name: repair_by_form.get(shape.form, _read_own(language, "repair")) for name, shape in SHAPES.items()}


def _load_judge_prompts(path: Path, repairs: Mapping[str, str]) -> dict[str, Prompt]:
    """Return the user's judge prompts.

    A folder or file replaces the prompts of the files' names. A file of another name replaces those with its variables.
    """
    judged = {name: shape for name, shape in SHAPES.items() if shape.role == "judge"}
    if path.is_dir():
        files = {file.stem: file for file in _list_files(path)}
        if unknown_names := sorted(files.keys() - judged.keys()):
            raise unknown(
                "prompt",
                unknown_names[0],
                judged,
                hint=Words("(the files of {path} must be named after the prompts that they replace)", path=path),
            )
        return {name: _load_user_prompt(file, name, repairs[name]) for name, file in files.items()}
    used = _find_variables(_read_text(path), path)
    names = [path.stem] if path.stem in judged else [n for n, shape in judged.items() if used == {*shape.variables}]
    if not names:
        raise InputError(
            "{path}: its variables ({used}) do not tell which of the judge's prompts it replaces. Name the file "
            "after the prompt: {judged}",
            path=path,
            used=", ".join(sorted(used)),
            judged=", ".join(f"{name}.txt" for name in judged),
        )
    return {name: _load_user_prompt(path, name, repairs[name]) for name in names}


def _load_user_prompt(path: Path, name: str, repair: str) -> Prompt:
    shape, text = SHAPES[name], _read_text(path)
    used_variables = _find_variables(text, path)
    if unknown_variables := sorted(used_variables - {*shape.variables}):
        raise unknown(
            Words("variable of the prompt {name!r}", name=name),
            unknown_variables[0],
            shape.variables,
            hint=Words("({path})", path=path),
        )
    if shape.needs not in used_variables:
        raise InputError("{path}: the prompt {name!r} must contain ${needs}", path=path, name=name, needs=shape.needs)
    return Prompt(name, shape, text, repair)


def _find_variables(text: str, path: Path) -> set[str]:
    template = Template(text)
    if not template.is_valid():
        raise InputError("{path}: a $ that begins no variable; write $$ for a literal $", path=path)
    return {name.removesuffix(VERBATIM) for name in template.get_identifiers()} - {MARK}


def _list_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError("{folder}: no such folder", folder=folder)
    return sorted(folder.glob("*.txt"))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else Words("not UTF-8")
        raise InputError("the prompt file {path} cannot be read: {reason}", path=path, reason=reason) from error


def _rubric_template(rubric: Rubric, language: Language) -> str:
    """Return the language's frame for rubrics with the paragraphs of the texts that the rubric uses."""
    variables = {name for shape in SHAPES.values() for name in shape.variables}
    unused = tuple(f"${name}" for name in variables - {*rubric.variables})
    parts = [part for part in _read_own(language, "rubric").split("\n\n") if not any(name in part for name in unused)]
    # A $ in the user's words is a character, not a variable.
    criterion, anchors = (text.replace("$", "$$") for text in (rubric.question, rubric.scale))
    return "\n\n".join(parts).replace("$criterion", criterion).replace("$anchors", anchors)


def _make_mark(template: str, texts: Mapping[str, VariableValue]) -> str:
    """Return a code that no text contains; equal texts get equal codes, because the call store hashes the prompt."""
    ordered_texts = (texts[name] for name in sorted(texts))
    parts = (part for text in ordered_texts for part in ([text] if isinstance(text, str) else text.values()))
    everything = "\0".join((template, *parts))
    code = hashlib.sha256(everything.encode("utf-8", "surrogatepass")).hexdigest()
    while (mark := code[:8]) in everything:
        code = hashlib.sha256(code.encode()).hexdigest()
    return mark
