"""Change the number or date in a context that the reference answers with."""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from yarus.metrics.facts import Fact, check_facts, facts, unsupported_facts
from yarus.tasks.cases.text import SENTENCE_BREAK, fold_text

CHANGEABLE_KINDS = ("number", "date", "time", "money", "percent", "room")
"""Kinds of facts whose value can be replaced; phones and addresses may be masked for the model."""
MONTHS = (
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
    "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
    "january february march april may june july august september october november december",
)
MONTH_FORMS = {month: form.split() for form in MONTHS for month in form.split()}
DIGITS = re.compile(r"\d+")
LETTERS = re.compile(r"[^\W\d_]+")
MAX_TRIES = 8
"""Attempts at a new value that is recognised as a fact and does not occur in the context."""


class Counterfactual(NamedTuple):
    """A changed context."""

    context: str
    original: str
    """The sentence with the value that was changed."""
    substitute: str
    """The changed sentence."""
    shifts: list[tuple[int, int]]
    """(end of an old value, shift of the following text in characters)."""


def make_counterfactual(
    context: str, reference: str | None, question: str, chance: random.Random
) -> Counterfactual | None:
    """Replace the first value in the context that the reference answers with, and the question lacks.

    Afterwards the context has the new value wherever the old one was. None if there is no such value, or it is written
    in words.

    Args:
        context: any text.
        reference: the right answer; None if there is none.
        question: values in it are not answers.
        chance: random generator of the new value.

    Example:
        >>> import random
        >>> from yarus.tasks.steps.contexts.counterfactual import make_counterfactual
        >>> changed = make_counterfactual("Приём до 12 мая. Каб. 7.", "12.05", "До какого дня приём?", random.Random(0))
        >>> changed.original, changed.substitute
        ('Приём до 12 мая.', 'Приём до 28 мая.')
    """
    if reference is None:
        return None
    checks = check_facts([context], [reference])[0] or []
    all_facts, known_text = [check.fact for check in checks], f"{reference}\n{question}"
    answering = {check.fact for check in checks if check.supported and check.fact.kind in CHANGEABLE_KINDS}
    for fact in _order_by_reference(context, reference, answering - _shared_facts(context, question)):
        for new_text in _new_values(fact, chance):
            if changed := _replace(context, fact, new_text, all_facts, known_text):
                return changed
    return None


def _order_by_reference(context: str, reference: str, candidates: set[Fact]) -> list[Fact]:
    """Order facts by their first mention in the reference, since the first is what was asked for."""
    if not candidates:
        return []
    mentions = [_shared_facts(context, fact.text) for fact in facts(reference)]
    return sorted(
        candidates,
        key=lambda fact: (
            next((index for index, group in enumerate(mentions) if fact in group), len(mentions)),
            fact.start,
        ),
    )


def _shared_facts(context: str, text: str) -> set[Fact]:
    """Return the facts of the context that another text states too."""
    return {checked.fact for checked in check_facts([context], [text])[0] or () if checked.supported}


def _new_values(fact: Fact, chance: random.Random) -> Iterator[str]:
    """Yield the fact's text with another day, hour, month or number."""
    groups = list(DIGITS.finditer(fact.text))
    if not groups:
        yield from _new_months(fact.text, chance)
        return
    group = _changeable_group(fact, groups)
    for _ in range(MAX_TRIES):
        digits = _new_digits(fact.kind, group[0], chance)
        if digits != group[0]:
            yield fact.text[: group.start()] + digits + fact.text[group.end() :]


def _changeable_group(fact: Fact, groups: list[re.Match[str]]) -> re.Match[str]:
    """Return the digits to change: of a date its day, wherever its year is; else the first."""
    if fact.kind == "date" and len(groups[0][0]) == 4:
        return groups[-1]
    return groups[0]


def _new_digits(kind: str, digits: str, chance: random.Random) -> str:
    """Return another number of as many digits: a valid day, a nearby year, or an hour."""
    if kind == "date" and len(digits) < 3:
        return str(chance.randint(1, 28)).zfill(len(digits) if digits[0] == "0" else 1)
    if kind == "date" or 1_000 <= int(digits) < 2_100:
        return str(int(digits) + chance.choice((-9, -7, -4, -2, 2, 3, 5, 8)))
    if kind == "time":
        return str(chance.randint(8, 20)).zfill(len(digits))
    lowest = 10 ** (len(digits) - 1)
    return str(chance.randint(max(2, lowest), 10 * lowest - 1))


def _new_months(text: str, chance: random.Random) -> Iterator[str]:
    for match in LETTERS.finditer(text):
        form = MONTH_FORMS.get(match[0].lower())
        if form is None:
            continue
        for month in chance.sample(form, MAX_TRIES):
            cased = month.capitalize() if match[0][0].isupper() else month
            if cased != match[0]:
                yield text[: match.start()] + cased + text[match.end() :]


def _replace(context: str, fact: Fact, new_text: str, all_facts: list[Fact], known_text: str) -> Counterfactual | None:
    """Return the context with the new value; None if it is not recognised, or the old one remains."""
    folded = fold_text(fact.text)
    spans = [(same.start, same.end) for same in all_facts if same.kind == fact.kind and fold_text(same.text) == folded]
    pieces, shifts, end = [], [], 0
    for start, stop in spans:
        pieces += [context[end:start], new_text]
        shifts.append((stop, len(new_text) - (stop - start)))
        end = stop
    changed = "".join([*pieces, context[end:]])
    shift_before = sum(shift for stop, shift in shifts if stop <= fact.start)
    begin, stop = _sentence_bounds(context, fact.start, fact.end)
    shift_inside = sum(shift for position, shift in shifts if begin < position <= stop)
    original, substitute = context[begin:stop], changed[begin + shift_before : stop + shift_before + shift_inside]
    lost_facts = unsupported_facts(check_facts([original], [substitute]))[0]
    added_facts = unsupported_facts(check_facts([substitute], [original]))[0]
    if not lost_facts or not added_facts:
        return None
    if _shared_facts(original, changed) & set(lost_facts) or _shared_facts(
        substitute, f"{context}\n{known_text}"
    ) & set(added_facts):
        return None
    return Counterfactual(changed, original, substitute, shifts)


def _sentence_bounds(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the sentence of a fact."""
    breaks = [(match.start(), match.end()) for match in SENTENCE_BREAK.finditer(text)]
    begin = max((next_start for _, next_start in breaks if next_start <= start), default=0)
    stop = min((previous_end for previous_end, _ in breaks if previous_end >= end), default=len(text))
    return begin, stop
