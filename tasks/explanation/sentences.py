"""What moved, in words: the same in the terminal, in the report and in an alert."""

from collections.abc import Iterator

from yarus.metrics.table import metric
from yarus.tasks.explanation.documents import ExplainedMetric, ExplainedPart, Explanation
from yarus.tasks.results.numbers import shown
from yarus.tasks.texts import texts

STAGES = ("retrieval", "generation", "refusal", "gate")


def sentences(document: Explanation, language: str) -> Iterator[str]:
    """Of every headline metric what moved it; then what is lost and what is new.

    Args:
        document: as `yarus.tasks.explanation.explain.explain` gives it.
        language: ru or en.
    """
    for name, found in document["metrics"].items():
        yield from of_metric(name, found, language)
    words, fates, statuses = (texts(section, language) for section in ("explanation", "fates", "statuses"))
    for lost in document["lost"]:
        why = fates[lost["fate"]] if lost["fate"] in ("removed", "edited") else ""
        about = words["about"].format(topics=", ".join(lost["topics"])) if lost["topics"] else ""
        said = words["lost"].format(n=lost["n"], status=statuses[lost["status"]])
        yield said + (f", {words['pages'].format(fate=why)}" if why else "") + about + "."
    for new in document["new_topics"]:
        yield words["new topic"].format(topic=new["topic"], n=new["n"], served=new["served"])


def of_metric(name: str, found: ExplainedMetric, language: str) -> Iterator[str]:
    """What moved one metric: questions and answers, and of the answers what is beyond chance."""
    words = texts("explanation", language)
    numbers = {side: shown(name, found[side]) for side in ("a", "b")}
    answers = found["answers"]
    same = found["n_a"] == found["n_b"] == found["n_common"]
    split = [words["same questions"] if same else words["questions"].format(part=_part(name, found["questions"]))]
    if answers is None:
        split.append(words["no common kind"])
    else:
        split.append(words[_how(name, answers)].format(part=_part(name, answers)))
    difference = shown(name, found["difference"], sign=True)
    yield words["moved"].format(metric=name, **numbers, difference=difference, parts="; ".join(split))
    causes = [
        words["cause"].format(
            pages=words["pages"].format(fate=texts("fates", language)[fate]),
            part=_part(name, part),
            n=part["n"],
            n_pages=part["pages"],
        )
        + (words["about"].format(topics=", ".join(part["topics"])) if part["topics"] else "")
        for fate, part in (found["fates"] or {}).items()
        if fate != "untouched" and beyond_chance(part)
    ]
    if causes:
        yield words["causes"].format(causes="; ".join(causes))
    stages = {name: part for name, part in (found["stages"] or {}).items() if name in STAGES and beyond_chance(part)}
    if stages:
        named = texts("explained_stages", language)
        yield words["stages"].format(
            stages="; ".join(f"{named[stage]} {_part(name, part)}" for stage, part in stages.items())
        )


def beyond_chance(part: ExplainedPart) -> bool:
    """Whether its interval is all on one side of 0."""
    return part["ci_low"] > 0 or part["ci_high"] < 0


def _how(name: str, answers: ExplainedPart) -> str:
    if not beyond_chance(answers):
        return "answers"
    return "better" if (answers["value"] > 0) == (metric(name).better == "higher") else "worse"


def _part(name: str, part: ExplainedPart) -> str:
    value, low, high = (shown(name, part[key], sign=True) for key in ("value", "ci_low", "ci_high"))
    return f"{value} ({low} … {high})"
