"""The papers of an exam: for some of the source's own questions, sound answers and damaged versions of them.

All choices are seeded by a hash of the seed, the question's id and the kind, so that the same questions make the same
papers on every machine.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from typing_extensions import TypedDict

from yarus.db.source_rows import QuestionRow
from yarus.metrics.exam_kinds import INSTRUCTED_KINDS, expects_damage
from yarus.tasks.cases.outcomes import reference_answer
from yarus.tasks.cases.sampling import question_stratum, stratified_sample
from yarus.tasks.cases.text import normalise_question, split_sentences, word_stems
from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.steps.exam import damage
from yarus.tasks.steps.exam.damage import find_names


class Answer(NamedTuple):
    """An answer of one kind."""

    text: str
    of: str | None = None
    """The id of the other question that it answers."""
    planted: str | None = None
    """Added to the context."""


Answers = dict[str, Answer]
SIMILAR_SHARE = 0.5
"""Share of common words from which on two answers may mean the same."""
MAX_OVERLAP = 0.25
"""Largest share of a sentence's words in the question, for the sentence to be about something else."""
SENTENCE_CHARACTERS = (20, 300)
BARE_WORDS = 3
"""Most content words of an answer that may fit any question, though it is wrong."""
MAX_CANDIDATES = 2_000
"""Most answers of other pages that are searched for one with another meaning."""


@dataclass(frozen=True, slots=True)
class ExaminedQuestion:
    """A question that can be examined."""

    question_id: str
    question: str
    context: str
    """The text that answers it."""
    reference: str | None
    """Its answer; without one only faithfulness can be examined."""
    page: str | None


class AnsweredQuestion(NamedTuple):
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
    """The prompts that must give a low score."""
    sound: list[str]
    """The prompts that must give a full score."""


@dataclass(frozen=True, slots=True)
class Paper:
    """All answers to one question that the judge scores."""

    subject: ExaminedQuestion
    items: list[Item]


def write_papers(
    subjects: Sequence[ExaminedQuestion],
    others: Sequence[AnsweredQuestion],
    prompts: Mapping[str, tuple[str, ...]],
    *,
    language: str,
    seed: int,
) -> list[Paper]:
    """Return the papers of questions.

    Args:
        subjects: the questions that are examined.
        others: all answered questions of the source, including the subjects; they provide answers to other questions.
        prompts: those that are examined, with the kinds that must lower a rubric's score.
        language: ru or en.
        seed: other seeds make other damage.
    """
    sources = _AnswerSources(subjects, others)
    return [
        Paper(subject, list(_list_items(subject, _examined_answers(subject, sources, language, seed), prompts)))
        for subject in subjects
    ]


def _list_items(subject: ExaminedQuestion, answers: Answers, prompts: Mapping[str, tuple[str, ...]]) -> Iterator[Item]:
    """Yield the answers that some prompt is examined with; without a reference only faithfulness is known."""
    for kind, (answer, other_question, planted) in answers.items():
        expectations = {
            prompt: expects_damage(kind, prompt, lowered_by)
            for prompt, lowered_by in prompts.items()
            if (subject.reference or prompt == "faithfulness")
            and not (prompt == "answer_relevance" and _is_bare(kind, answer))
        }
        damaged = [name for name, is_low in expectations.items() if is_low]
        sound = [name for name, is_low in expectations.items() if is_low is False]
        if damaged or sound:
            yield {
                "kind": kind,
                "answer": answer,
                "of": other_question,
                "planted": planted,
                "damaged": damaged,
                "sound": sound,
            }


def _is_bare(kind: str, answer: str) -> bool:
    """Return whether another answer is so short that it fits any question: a number, a name, a date."""
    return kind in ("other_question", "other_page") and len(word_stems(answer)) <= BARE_WORDS


class _AnswerSources:
    """Sources of wrong answers and names."""

    def __init__(self, subjects: Sequence[ExaminedQuestion], others: Sequence[AnsweredQuestion]) -> None:
        self._others = sorted(
            set(others), key=lambda other: (len(other.answer), other.answer, other.page or "", other.question)
        )
        self._lengths = [len(other.answer) for other in self._others]
        self._of_page: dict[str | None, list[AnsweredQuestion]] = {}
        for other in self._others:
            self._of_page.setdefault(other.page, []).append(other)
        self.names = {
            context: damage.find_names(context) for context in dict.fromkeys(subject.context for subject in subjects)
        }

    def names_elsewhere(self, subject: ExaminedQuestion) -> list[str]:
        """Return the names in the contexts of other subjects."""
        return [name for context, names in self.names.items() if context != subject.context for name in names]

    def answers_of_page(self, subject: ExaminedQuestion, sound: str) -> Iterable[AnsweredQuestion]:
        """Return the answers to the page's other questions, those nearest in length first."""
        same_page = self._of_page.get(subject.page, []) if subject.page else []
        return sorted(same_page, key=lambda answered: abs(len(answered.answer) - len(sound)))

    def answers_elsewhere(self, subject: ExaminedQuestion, sound: str) -> Iterator[AnsweredQuestion]:
        """Yield answers of other pages, nearest in length first, up to a maximum."""
        above = bisect_left(self._lengths, len(sound))
        below = above - 1
        for _ in range(MAX_CANDIDATES):
            lower = len(sound) - self._lengths[below] if below >= 0 else None
            higher = self._lengths[above] - len(sound) if above < len(self._others) else None
            if lower is None and higher is None:
                return
            if higher is None or (lower is not None and lower < higher):
                candidate, below = self._others[below], below - 1
            else:
                candidate, above = self._others[above], above + 1
            if candidate.page != subject.page:
                yield candidate


def _examined_answers(subject: ExaminedQuestion, sources: _AnswerSources, language: str, seed: int) -> Answers:
    """Return the answers that question, context and reference allow, without copies of the sound one."""
    phrases = texts("exam_answers", language)
    sentence = _unrelated_sentence(subject, _seeded_random(seed, subject, "sentence"))
    sound = subject.reference or sentence
    if sound is None:
        return {}
    known_text = "\n".join((subject.question, subject.context, sound))
    names = sources.names[subject.context], sources.names_elsewhere(subject)
    by_kind: dict[str, str | None] = {
        "number": damage.change_number(sound, known_text, language, _seeded_random(seed, subject, "number")),
        "negation": damage.negate(sound, language),
        "entity": damage.exchange_name(sound, *names, known_text, _seeded_random(seed, subject, "entity")),
        "shorter": damage.first_sentence(sound),
    }
    others = {"other_page": _find_other(subject, sound, sources.answers_elsewhere(subject, sound), absent=True)}
    if subject.reference:
        by_kind |= {
            "framed": phrases["framed"].format(sound),
            "half": damage.leave_out_half(sound, subject.question),
            "irrelevant": sentence,
            "question": subject.question,
            "empty": min(phrases["empty"].splitlines(), key=lambda phrase: abs(len(phrase) - len(sound))),
        }
        others["other_question"] = _find_other(subject, sound, sources.answers_of_page(subject, sound), absent=False)
    answers: Answers = {"reference" if subject.reference else "sentence": Answer(sound)}
    answers |= {kind: Answer(answer) for kind, answer in by_kind.items() if answer and answer.strip() != sound.strip()}
    answers |= {kind: Answer(other.answer, other.question_id) for kind, other in others.items() if other}
    return answers | {
        kind: _plant_request(answers[base], kind, _seeded_random(seed, subject, kind))
        for kind, base in INSTRUCTED_KINDS.items()
        if base in answers
    }


def _plant_request(base: Answer, kind: str, chance: Random) -> Answer:
    """Add a request for a high score, in either language, to an answer or to its context."""
    request = chance.choice(
        [line for language in LANGUAGES for line in texts("exam_answers", language)["requests"].splitlines() if line]
    )
    if kind == "instructed":
        return base._replace(text=f"{base.text}\n\n{request}")
    return base._replace(planted=request)


def _seeded_random(seed: int, subject: ExaminedQuestion, kind: str) -> Random:
    return Random(f"{seed}|{subject.question_id}|{kind}")


def has_sentence(context: str) -> bool:
    """Return whether a context has a sentence that can replace the answer to a question without a reference."""
    return bool(_quotable_sentences(context))


def _quotable_sentences(context: str) -> list[str]:
    low, high = SENTENCE_CHARACTERS
    return [text for text in split_sentences(context) if low <= len(text) <= high]


def _unrelated_sentence(subject: ExaminedQuestion, chance: Random) -> str | None:
    """Return a sentence of the context; if there is a reference, one that answers nothing of the question."""
    sentences = _quotable_sentences(subject.context)
    if subject.reference is None:
        return chance.choice(sentences) if sentences else None
    answer, question_words = word_stems(subject.reference), word_stems(subject.question)
    unrelated = [
        text
        for text in sentences
        if not answer & word_stems(text) and _shared_word_share(word_stems(text), question_words) <= MAX_OVERLAP
    ]
    reference = subject.reference
    return min(unrelated, key=lambda text: abs(len(text) - len(reference)), default=None)


def _find_other(
    subject: ExaminedQuestion, sound: str, candidates: Iterable[AnsweredQuestion], *, absent: bool
) -> AnsweredQuestion | None:
    """Return the first answer with another meaning; `absent`: that the context does not support either."""
    sound_words, context_words, sound_text = word_stems(sound), word_stems(subject.context), normalise_question(sound)
    question_text = normalise_question(subject.question)
    for candidate in candidates:
        other_words, other_text = word_stems(candidate.answer), normalise_question(candidate.answer)
        is_different = (
            other_words
            and other_text not in sound_text
            and sound_text not in other_text
            and max(_shared_word_share(other_words, sound_words), _shared_word_share(sound_words, other_words))
            < SIMILAR_SHARE
        )
        if (
            is_different
            and normalise_question(candidate.question) != question_text
            and not (absent and _shared_word_share(other_words, context_words) >= SIMILAR_SHARE)
        ):
            return candidate
    return None


def _shared_word_share(words_of_first: set[str], words_of_second: set[str]) -> float:
    return len(words_of_first & words_of_second) / len(words_of_first) if words_of_first else 0.0


def draw_subjects(
    questions: Sequence[QuestionRow],
    first_pages: Sequence[str | None],
    corpus_pages: Collection[str | None],
    n: int,
    seed: int,
) -> list[int]:
    """Draw the questions that an exam is made of, those with a reference before those without.

    A third have a reference with a name, if there are enough: few references do, and only these show a judge that does
    not notice exchanged names.

    Args:
        questions: rows with their labels.
        first_pages: the first page that is relevant for each, as `yarus.tasks.cases.labels.labelled_page` has it.
        corpus_pages: the pages of the corpus.
        n: how many questions at most.
        seed: of the sample.

    Returns:
        Their positions among the questions.
    """
    labelled = [number for number, page in enumerate(first_pages) if page is not None and page in corpus_pages]
    answered = [number for number in labelled if reference_answer(questions[number])]
    unanswered = [number for number in labelled if not reference_answer(questions[number])]
    naming = [number for number in answered if find_names(reference_answer(questions[number]) or "")]
    numbers = _draw(questions, naming, n // 3, seed)
    for group in (answered, unanswered):
        remaining = sorted(set(group) - set(numbers))
        numbers += _draw(questions, remaining, n - len(numbers), seed)
    return numbers


def _draw(questions: Sequence[QuestionRow], numbers: Sequence[int], n: int, seed: int) -> list[int]:
    rows = [questions[number] for number in numbers]
    ids, strata = [row["question_id"] for row in rows], list(map(question_stratum, rows))
    return [numbers[position] for position in stratified_sample(ids, strata, n, seed)] if n > 0 else []
