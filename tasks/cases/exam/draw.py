"""Which questions a judge is examined with: a seeded sample of those whose page is known."""

from collections.abc import Collection, Sequence

from yarus.tasks.cases.answers import reference_of
from yarus.tasks.cases.exam.damage import names_in
from yarus.tasks.cases.labels import Row
from yarus.tasks.cases.sampling import sampled, topic_and_score


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
