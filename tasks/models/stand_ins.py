"""Stand-ins for language models, so that everything runs with no key: deterministic, by words alone, and named so.

Words are lower-cased, «ё» written as «е», cut to their first 5 letters (a crude stem: Russian endings differ), without
the language's commonest words. With A, C, Q, R the sets of words of answer, context, question and reference:

    faithfulness        |A & C| / |A|
    answer_relevance    |A & Q| / |Q|
    answer_correctness  2 |A & R| / (|A| + |R|)
    e2e_score           |A & R| / |R|
    follow_up           |A & (H | Q)| / |A|, H the words of what was said before
    answerability       |C & Q| / |Q|
    support             a source supports a claim if it has at least 3/4 of the claim's words
    nugget_support      the answer has a nugget from 3/4 of the nugget's words on, a part of it from 1/2 on
    relevance           3, 2, 1 or 0: |C & Q| / |Q| from 3/4, 1/2, 1/4 on, and below
    gate                yes if |A & C| / |A| >= 0.5 and the answer is not a refusal

A text without words has nothing in common with anything: 0. Each sentence of a text is a claim, each of a reference a
vital nugget. The generator returns
the sentence of the context that has most of the question's words, the first among equals, and «ответ не найден» where
none has any.
Asked for a question of its own, it takes a sentence of the passage (which one: by a hash of what it is given), asks
what is known about its first words of content, and answers with the sentence; of several passages it takes a sentence
each; where no answer is wanted, it asks about one of the words what no passage knows.
These say how far texts share words; they know no meaning, and no figure of theirs is a judgement of quality.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from yarus.db.tables import Json
from yarus.tasks.cases.text import WORD, sentences, words
from yarus.tasks.config.texts import texts
from yarus.tasks.models.calls import LISTING, Call, Reply, RoleName, ignored

JUDGE = "lexical (no language model)"
GENERATOR = "extractive (no language model)"
CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
REFUSALS = ("ответ не найден", "answer not found")
PARTED = "\n\n* * *\n\n"
"""Stands between several passages."""
TOPIC = 4  # words of content that a question is made of
SHOWN = 0.5  # share of the answer's words from which on the gate lets it pass
SAID = 0.75  # share of a claim's words from which on a source supports it


class Offline:
    """The stand-in of a role."""

    def __init__(self, name: RoleName) -> None:
        self.name = name

    def describe(self) -> str:
        """See `Model`."""
        return GENERATOR if self.name == "generator" else JUDGE

    async def ask(self, call: Call) -> Reply:
        """See `Model`. A rubric needs a language model: `not_applicable`."""
        text = _reply(call)
        if text is None:
            return Reply(
                "not_applicable", f"{call.prompt.name} needs a language model", requested_model=self.describe()
            )
        return Reply(
            "ok", raw=text, requested_model=self.describe(), served_model=self.describe(), finish_reason="stop",
            tokens_in=0, tokens_out=0, cost_usd=0.0, latency_ms=0.0, logprobs=_logprobs(call, text),
        )  # fmt: skip

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None] = ignored) -> list[Reply]:
        """See `Model`."""
        replies = []
        for call in calls:
            replies.append(await self.ask(call))
            each(replies[-1])
        return replies


def _logprobs(call: Call, reply: str) -> tuple[float, ...] | None:
    """Of the gate's yes or no: its share of words is how sure it is."""
    if call.prompt.name != "gate":
        return None
    said = cast("Mapping[str, str]", call.texts)
    share = precision(words(said["answer"]), words(said["context"]))
    sure = share if reply == "Yes" else max(0.5, 1 - share)  # of a refusal it says no, whatever its words
    return (math.log(max(sure, SHOWN)),)


def extract(question: str, context: str) -> str:
    """The sentence of the context that has most of the question's words, or that there is none."""
    asked = words(question)
    best = max(sentences(context), key=lambda sentence: len(asked & words(sentence)), default="")
    return best if asked & words(best) else REFUSALS[0 if CYRILLIC.search(question) else 1]


def precision(answer: set[str], other: set[str]) -> float:
    """Share of the answer's words that the other text has; 0..1."""
    return len(answer & other) / len(answer) if answer else 0.0


def recall(answer: set[str], other: set[str]) -> float:
    """Share of the other text's words that the answer has; 0..1."""
    return precision(other, answer)


def f1(answer: set[str], other: set[str]) -> float:
    """Harmonic mean of both; 0..1."""
    return 2 * len(answer & other) / (len(answer) + len(other)) if answer or other else 0.0


FORMULAS: dict[str, tuple[Callable[[set[str], set[str]], float], str]] = {
    "faithfulness": (precision, "context"),
    "answer_relevance": (recall, "question"),
    "answer_correctness": (f1, "reference"),
    "e2e_score": (recall, "reference"),
    "gate": (precision, "context"),
}


def invented(kind: str, context: str, examples: str) -> dict[str, str]:
    """A question and its answer, taken from the words of the passages.

    Args:
        kind: `single`, `multi` or `unanswerable`.
        context: the passages.
        examples: of other questions; they only change which sentence is taken.
    """
    chance = int.from_bytes(hashlib.sha256(f"{examples}\0{context}".encode("utf-8", "surrogatepass")).digest()[:8])
    language = "ru" if CYRILLIC.search(context) else "en"
    said = texts("stand_ins", language)
    parts = context.split(PARTED) if kind == "multi" else [context]
    sentences = [_sentence(part, chance) for part in parts]
    others = [set().union(*(words(other) for other in parts if other is not part)) for part in parts]
    topics = [_topic(*pair, most=TOPIC // len(parts)) for pair in zip(sentences, others, strict=True)]
    if kind == "unanswerable":
        topic = (topics[0] or ["…"])[chance % max(1, len(topics[0]))]
        question = said["foreign"].splitlines()[chance % 3].format(topic)
        return {"question": question, "answer": REFUSALS[0 if language == "ru" else 1]}
    topic = ", ".join(word for of in topics for word in of)
    return {"question": said["about"].format(topic), "answer": " ".join(sentences)}


def _sentence(text: str, chance: int) -> str:
    """One with words of content enough, if there is any."""
    rich = [sentence for sentence in sentences(text) if len(_topic(sentence, set(), most=TOPIC)) == TOPIC]
    known = rich or sentences(text) or [text]
    return known[chance % len(known)]


def _topic(sentence: str, others: set[str], *, most: int) -> list[str]:
    """The first words of content of a sentence that the other passages do not have."""
    said = (word for word in WORD.findall(sentence) if len(word) > 3 and word.isalpha())
    own = [word.lower() for word in said if words(word) and not words(word) & others]
    return list(dict.fromkeys(own))[:most]


def listed(name: str, texts: Mapping[str, Mapping[str, str]]) -> dict[str, list[Json]]:
    """What a prompt that asks for a list gets.

    Args:
        name: `claims`, `support`, `nuggets` or `nugget_support`.
        texts: what the prompt is filled with; where there are several of a kind, by label.
    """
    if name == "claims":
        told = enumerate(texts["sentences"].values(), 1)
        return {"claims": [{"sentence": i, "claim": said} for i, said in told if any(map(str.isalpha, said))]}
    if name == "nuggets":
        return {"nuggets": [{"nugget": said, "vital": True} for said in sentences(str(texts["reference"]))]}
    if name == "nugget_support":
        answer = words(str(texts["answer"]))
        shares = {label: precision(words(text), answer) for label, text in texts["nuggets"].items()}
        return {"verdicts": [{"id": label, "support": _support(share)} for label, share in shares.items()]}
    sources = {label: words(text) for label, text in texts["sources"].items()}
    claims = {label: words(text) for label, text in texts["claims"].items()}
    return {
        "verdicts": [
            {"id": label, "supported_by": [of for of, source in sources.items() if precision(claim, source) >= SAID]}
            for label, claim in claims.items()
        ]
    }


def _support(share: float) -> str:
    return "full" if share >= SAID else "partial" if share >= SHOWN else "none"


def _reply(call: Call) -> str | None:
    name, texts = call.prompt.name, cast("Mapping[str, str]", call.texts)
    if call.prompt.shape.form in LISTING:
        return json.dumps(listed(name, cast("Mapping[str, Mapping[str, str]]", call.texts)), ensure_ascii=False)
    if name.startswith("synthesis_"):
        return json.dumps(invented(name.removeprefix("synthesis_"), texts["context"], texts["examples"]))
    if name == "answerability":
        share = recall(words(texts["context"]), words(texts["question"]))
        return json.dumps({"reason": "recall of the question's words", "score": round(share, 6)})
    if name == "relevance":
        share = recall(words(texts["passage"]), words(texts["question"]))
        return json.dumps({"reason": "recall of the question's words", "score": min(3, int(share * 4))})
    if name == "generation":
        return extract(texts["question"], texts["context"])
    if name == "follow_up":
        known = "\n".join([texts["question"], *cast("Mapping[str, str]", texts["history"]).values()])
        share = precision(words(texts["answer"]), words(known))
        return json.dumps({"reason": "precision of words against the dialog", "score": round(share, 6)})
    if name not in FORMULAS:
        return None
    formula, other = FORMULAS[name]
    share = formula(words(texts["answer"]), words(texts[other]))
    if name == "gate":
        refused = texts["answer"].strip(" .!").casefold() in REFUSALS
        return "Yes" if share >= SHOWN and not refused else "No"
    return json.dumps({"reason": f"{formula.__name__} of words against the {other}", "score": round(share, 6)})
