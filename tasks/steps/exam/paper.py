"""The papers of an exam: for some of the source's own questions, sound answers and twins of them that are damaged.

Everything is drawn by a hash of the seed, the question's id and the kind, so that the same questions make the same
papers on every machine.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from typing_extensions import TypedDict

from yarus.db.source_rows import Row
from yarus.metrics.exam_kinds import PLANTED, expected
from yarus.tasks.cases.outcomes import reference_of
from yarus.tasks.cases.sampling import sampled, topic_and_score
from yarus.tasks.cases.text import normalised, words
from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.steps.exam import damage
from yarus.tasks.steps.exam.damage import names_in


class Answer(NamedTuple):
    """An answer of one kind."""

    text: str
    of: str | None = None
    """The id of the other question that it answers."""
    planted: str | None = None
    """Added to the context."""


Answers = dict[str, Answer]
LIKE = 0.5
"""Share of words in common from which on two answers may say the same."""
ASIDE = 0.25
"""Most words of a sentence that the question or the reference may have, for it to be about something else."""
SENTENCE_CHARACTERS = (20, 300)
BARE = 3
"""Words of content up to which an answer to another question may pass for one to this, only a wrong one."""
MOST_LOOKED_AT = 2_000
"""Answers of other pages among which one that says something else is looked for."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A question that an exam can be made of."""

    question_id: str
    question: str
    context: str
    """The text that answers it."""
    reference: str | None
    """Its answer; without one only what is faithful can be told."""
    page: str | None


class Other(NamedTuple):
    """A question of the source with its answer."""

    answer: str
    page: str | None
    question: str
    question_id: str


class Item(TypedDict):
    """An answer that the judge is examined with."""

    kind: str
    """Of `yarus.metrics.exam_kinds.KINDS`."""
    answer: str
    of: str | None
    """The other question whose answer it is."""
    planted: str | None
    """Added to the context."""
    damaged: list[str]
    """The prompts whose score must be low."""
    sound: list[str]
    """The prompts whose score must be full."""


@dataclass(frozen=True, slots=True)
class Paper:
    """What the judge is asked about one question."""

    subject: Subject
    items: list[Item]


def papers(
    subjects: Sequence[Subject],
    others: Sequence[Other],
    prompts: Mapping[str, tuple[str, ...]],
    *,
    language: str,
    seed: int,
) -> list[Paper]:
    """The papers of questions.

    Args:
        subjects: the questions that are examined.
        others: all answered questions of the source, these too: answers to other questions are taken from them.
        prompts: those that are examined, and of rubrics the kinds that must lower their score.
        language: ru or en.
        seed: other seeds make other twins.
    """
    known = _Known(subjects, others)
    return [
        Paper(subject, list(_items(subject, _answers(subject, known, language, seed), prompts))) for subject in subjects
    ]


def _items(subject: Subject, answers: Answers, prompts: Mapping[str, tuple[str, ...]]) -> Iterator[Item]:
    """Those that some prompt is asked about; without a reference only what is faithful is known."""
    for kind, (answer, of, planted) in answers.items():
        asked = {
            prompt: expected(kind, prompt, lowered_by)
            for prompt, lowered_by in prompts.items()
            if (subject.reference or prompt == "faithfulness")
            and not (prompt == "answer_relevance" and _bare(kind, answer))
        }
        damaged, sound = ([name for name, low in asked.items() if low is worth] for worth in (True, False))
        if damaged or sound:
            yield {
                "kind": kind,
                "answer": answer,
                "of": of,
                "planted": planted,
                "damaged": damaged,
                "sound": sound,
            }


def _bare(kind: str, answer: str) -> bool:
    """Whether another answer is so short that it may be about any question: a number, a name, a date."""
    return kind in ("other_question", "other_page") and len(words(answer)) <= BARE


class _Known:
    """Where wrong answers and names come from."""

    def __init__(self, subjects: Sequence[Subject], others: Sequence[Other]) -> None:
        self._others = sorted(
            set(others), key=lambda other: (len(other.answer), other.answer, other.page or "", other.question)
        )
        self._lengths = [len(other.answer) for other in self._others]
        self._of_page: dict[str | None, list[Other]] = {}
        for other in self._others:
            self._of_page.setdefault(other.page, []).append(other)
        self.names = {context: damage.names_in(context) for context in dict.fromkeys(s.context for s in subjects)}

    def names_elsewhere(self, subject: Subject) -> list[str]:
        """The names in the contexts of other subjects."""
        return [name for context, names in self.names.items() if context != subject.context for name in names]

    def answers_of_page(self, subject: Subject, sound: str) -> Iterable[Other]:
        """The answers to the page's other questions, those nearest in length to a sound one first."""
        alike = self._of_page.get(subject.page, []) if subject.page else []
        return sorted(alike, key=lambda other: abs(len(other.answer) - len(sound)))

    def answers_elsewhere(self, subject: Subject, sound: str) -> Iterator[Other]:
        """The same of other pages'; the first so many."""
        above = bisect_left(self._lengths, len(sound))
        below = above - 1
        for _ in range(MOST_LOOKED_AT):
            lower = len(sound) - self._lengths[below] if below >= 0 else None
            higher = self._lengths[above] - len(sound) if above < len(self._others) else None
            if lower is None and higher is None:
                return
            if higher is None or (lower is not None and lower < higher):
                other, below = self._others[below], below - 1
            else:
                other, above = self._others[above], above + 1
            if other.page != subject.page:
                yield other


def _answers(subject: Subject, known: _Known, language: str, seed: int) -> Answers:
    """Those that there is something for in question, context and reference, and that are no copy of the sound one."""
    said = texts("exam_answers", language)
    beside = _beside(subject, _chance(seed, subject, "sentence"))
    sound = subject.reference or beside
    if sound is None:
        return {}
    everything = "\n".join((subject.question, subject.context, sound))
    names = known.names[subject.context], known.names_elsewhere(subject)
    of_own: dict[str, str | None] = {
        "number": damage.change_number(sound, everything, language, _chance(seed, subject, "number")),
        "negation": damage.negate(sound, language),
        "entity": damage.exchange_name(sound, *names, everything, _chance(seed, subject, "entity")),
        "shorter": damage.first_sentence(sound),
    }
    others = {"other_page": _other(subject, sound, known.answers_elsewhere(subject, sound), absent=True)}
    if subject.reference:
        of_own |= {
            "framed": said["framed"].format(sound),
            "half": damage.leave_out_half(sound, subject.question),
            "irrelevant": beside,
            "question": subject.question,
            "empty": min(said["empty"].splitlines(), key=lambda phrase: abs(len(phrase) - len(sound))),
        }
        others["other_question"] = _other(subject, sound, known.answers_of_page(subject, sound), absent=False)
    made: Answers = {"reference" if subject.reference else "sentence": Answer(sound)}
    made |= {kind: Answer(answer) for kind, answer in of_own.items() if answer and answer.strip() != sound.strip()}
    made |= {kind: Answer(other.answer, other.question_id) for kind, other in others.items() if other}
    return made | {
        kind: _plant_request(made[plain], kind, _chance(seed, subject, kind))
        for kind, plain in PLANTED.items()
        if plain in made
    }


def _plant_request(plain: Answer, kind: str, chance: Random) -> Answer:
    """Add a request for a high score, in either language, to an answer or to its context."""
    request = chance.choice(
        [line for language in LANGUAGES for line in texts("exam_answers", language)["requests"].splitlines() if line]
    )
    if kind == "instructed":
        return plain._replace(text=f"{plain.text}\n\n{request}")
    return plain._replace(planted=request)


def _chance(seed: int, subject: Subject, kind: str) -> Random:
    return Random(f"{seed}|{subject.question_id}|{kind}")


def has_sentence(context: str) -> bool:
    """Return whether a context has a sentence that can stand for the answer of a question without a reference."""
    return bool(_quotable(context))


def _quotable(context: str) -> list[str]:
    low, high = SENTENCE_CHARACTERS
    return [text for text in damage.sentences(context) if low <= len(text) <= high]


def _beside(subject: Subject, chance: Random) -> str | None:
    """A sentence of the context: where there is a reference, one that says something else and answers nothing."""
    found = _quotable(subject.context)
    if subject.reference is None:
        return chance.choice(found) if found else None
    answer, asked = words(subject.reference), words(subject.question)
    aside = [text for text in found if not answer & words(text) and _share(words(text), asked) <= ASIDE]
    reference = subject.reference
    return min(aside, key=lambda text: abs(len(text) - len(reference)), default=None)


def _other(subject: Subject, sound: str, others: Iterable[Other], *, absent: bool) -> Other | None:
    """The first of other answers that says something else; `absent`: and that the context does not back."""
    own, context, plain = words(sound), words(subject.context), normalised(sound)
    asked = normalised(subject.question)
    for other in others:
        of, said = words(other.answer), normalised(other.answer)
        apart = of and said not in plain and plain not in said and max(_share(of, own), _share(own, of)) < LIKE
        if apart and normalised(other.question) != asked and not (absent and _share(of, context) >= LIKE):
            return other
    return None


def _share(of: set[str], other: set[str]) -> float:
    return len(of & other) / len(of) if of else 0.0


def draw_subjects(
    questions: Sequence[Row], named: Sequence[str | None], there: Collection[str | None], n: int, seed: int
) -> list[int]:
    """Draw the questions that an exam is made of, those with a reference before those without.

    A third are questions whose reference names something, if there are so many: few references do, and a judge that
    does not see exchanged names is known by these alone.

    Args:
        questions: rows with their labels.
        named: the first page that is relevant for each, as `yarus.tasks.cases.labels.page_named` has it.
        there: the pages of the corpus.
        n: how many questions at most.
        seed: of the sample.

    Returns:
        Their places among the questions.
    """
    labelled = [number for number, page in enumerate(named) if page is not None and page in there]
    answered = [number for number in labelled if reference_of(questions[number])]
    others = [number for number in labelled if not reference_of(questions[number])]
    naming = [number for number in answered if names_in(reference_of(questions[number]) or "")]
    numbers = _draw(questions, naming, n // 3, seed)
    for rest in (answered, others):
        left = sorted(set(rest) - set(numbers))
        numbers += _draw(questions, left, n - len(numbers), seed)
    return numbers


def _draw(questions: Sequence[Row], numbers: Sequence[int], n: int, seed: int) -> list[int]:
    rows = [questions[number] for number in numbers]
    ids, strata = [row["question_id"] for row in rows], list(map(topic_and_score, rows))
    return [numbers[place] for place in sampled(ids, strata, n, seed)] if n > 0 else []
