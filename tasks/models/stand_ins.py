"""Stand-ins for language models, so that everything runs without a key: deterministic and based on words alone.

Words are lower-cased, «ё» written as «е», cut to their first 5 letters (a crude stem: Russian endings differ), without
the language's commonest words. With A, C, Q, R the sets of words of answer, context, question and reference:

    faithfulness        |A & C| / |A|
    answer_relevance    |A & Q| / |Q|
    answer_correctness  2 |A & R| / (|A| + |R|)
    e2e_score           |A & R| / |R|
    follow_up           |A & (H | Q)| / |A|, H the words of the earlier turns
    answerability       |C & Q| / |Q|
    support             a source supports a claim if it has at least 3/4 of the claim's words
    nugget_support      the answer has a nugget from 3/4 of the nugget's words on, a part of it from 1/2 on
    relevance           3, 2, 1 or 0: |C & Q| / |Q| from 3/4, 1/2, 1/4 on, and below
    gate                yes if |A & C| / |A| >= 0.5 and the answer is not a refusal

A text without words scores 0. Each sentence of a text is a claim; each sentence of a reference is a vital nugget. The
generator returns the sentence of the context with most of the question's words, the first among equals. If no sentence
has any of them, it returns «ответ не найден».
To make a question, it takes a sentence of the passage, chosen by a hash of its input. It asks what is known about the
first content words of the sentence, and answers with the sentence; from several passages it takes one sentence each. An
unanswerable question asks about one of the words something that no passage contains.
The scores measure how many words texts share. They do not measure meaning or quality.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from yarus.db.tables import JsonObject
from yarus.tasks.cases.text import WORD_PATTERN, split_sentences, word_stems
from yarus.tasks.config.texts import texts
from yarus.tasks.models.calls import LIST_FORMS, Call, Reply, RoleName, ignore_reply

JUDGE_NAME = "lexical (no language model)"
GENERATOR_NAME = "extractive (no language model)"
CYRILLIC_LETTER = re.compile("[а-яё]", re.IGNORECASE)
REFUSALS = ("ответ не найден", "answer not found")
PASSAGE_SEPARATOR = "\n\n* * *\n\n"
"""Separator of several passages."""
TOPIC_WORDS = 4  # content words in a question
MIN_GATE_SHARE = 0.5  # share of the answer's words from which the gate lets it pass
MIN_SUPPORT_SHARE = 0.75  # share of a claim's words from which a source supports it


class OfflineModel:
    """Stand-in for the model of a role."""

    def __init__(self, name: RoleName) -> None:
        self.name = name

    def describe(self) -> str:
        """See `Model`."""
        return GENERATOR_NAME if self.name == "generator" else JUDGE_NAME

    async def ask(self, call: Call) -> Reply:
        """See `Model`. A rubric needs a language model, so its status is `not_applicable`."""
        text = _scored_reply(call)
        if text is None:
            return Reply(
                "not_applicable", f"{call.prompt.name} needs a language model", requested_model=self.describe()
            )
        return Reply(
            "ok", raw=text, requested_model=self.describe(), served_model=self.describe(), finish_reason="stop",
            tokens_in=0, tokens_out=0, cost_usd=0.0, latency_ms=0.0, logprobs=_gate_logprobs(call, text),
        )  # fmt: skip

    async def complete(self, calls: Iterable[Call], each: Callable[[Reply], None] = ignore_reply) -> list[Reply]:
        """See `Model`."""
        replies = []
        for call in calls:
            replies.append(await self.ask(call))
            each(replies[-1])
        return replies


def _gate_logprobs(call: Call, reply: str) -> tuple[float, ...] | None:
    """Return the log-probability of the gate's yes or no, from the share of words."""
    if call.prompt.name != "gate":
        return None
    call_texts = cast("Mapping[str, str]", call.texts)
    share = precision(word_stems(call_texts["answer"]), word_stems(call_texts["context"]))
    confidence = share if reply == "Yes" else max(0.5, 1 - share)  # the gate rejects a refusal, whatever its words
    return (math.log(max(confidence, MIN_GATE_SHARE)),)


def extract_answer(question: str, context: str) -> str:
    """Return the sentence of the context with most of the question's words, or a refusal."""
    question_words = word_stems(question)
    best = max(split_sentences(context), key=lambda sentence: len(question_words & word_stems(sentence)), default="")
    return best if question_words & word_stems(best) else REFUSALS[0 if CYRILLIC_LETTER.search(question) else 1]


def precision(answer: set[str], reference: set[str]) -> float:
    """Return the share of the answer's words that the other text has, 0..1."""
    return len(answer & reference) / len(answer) if answer else 0.0


def recall(answer: set[str], reference: set[str]) -> float:
    """Return the share of the other text's words that the answer has, 0..1."""
    return precision(reference, answer)


def f1(answer: set[str], reference: set[str]) -> float:
    """Return the harmonic mean of precision and recall, 0..1."""
    return 2 * len(answer & reference) / (len(answer) + len(reference)) if answer or reference else 0.0


FORMULAS: dict[str, tuple[Callable[[set[str], set[str]], float], str]] = {
    "faithfulness": (precision, "context"),
    "answer_relevance": (recall, "question"),
    "answer_correctness": (f1, "reference"),
    "e2e_score": (recall, "reference"),
    "gate": (precision, "context"),
}


def make_question(kind: str, context: str, examples: str) -> dict[str, str]:
    """Return a question and its answer, taken from the words of the passages.

    Args:
        kind: `single`, `multi` or `unanswerable`.
        context: the passages.
        examples: of other questions; they only change which sentence is taken.
    """
    seed = int.from_bytes(hashlib.sha256(f"{examples}\0{context}".encode("utf-8", "surrogatepass")).digest()[:8])
    language = "ru" if CYRILLIC_LETTER.search(context) else "en"
    templates = texts("stand_ins", language)
    passages = context.split(PASSAGE_SEPARATOR) if kind == "multi" else [context]
    sentences = [_choose_sentence(passage, seed) for passage in passages]
    other_words = [set().union(*(word_stems(rest) for rest in passages if rest is not passage)) for passage in passages]
    topics = [_topic(*pair, limit=TOPIC_WORDS // len(passages)) for pair in zip(sentences, other_words, strict=True)]
    if kind == "unanswerable":
        topic = (topics[0] or ["…"])[seed % max(1, len(topics[0]))]
        question = templates["foreign"].splitlines()[seed % 3].format(topic)
        return {"question": question, "answer": REFUSALS[0 if language == "ru" else 1]}
    topic = ", ".join(word for words_of_topic in topics for word in words_of_topic)
    return {"question": templates["about"].format(topic), "answer": " ".join(sentences)}


def _choose_sentence(text: str, seed: int) -> str:
    """Return a sentence, if possible one with enough content words."""
    rich = [
        sentence for sentence in split_sentences(text) if len(_topic(sentence, set(), limit=TOPIC_WORDS)) == TOPIC_WORDS
    ]
    candidates = rich or split_sentences(text) or [text]
    return candidates[seed % len(candidates)]


def _topic(sentence: str, excluded: set[str], *, limit: int) -> list[str]:
    """Return the first content words of a sentence that the other passages do not have."""
    content_words = (word for word in WORD_PATTERN.findall(sentence) if len(word) > 3 and word.isalpha())
    topic_words = [word.lower() for word in content_words if word_stems(word) and not word_stems(word) & excluded]
    return list(dict.fromkeys(topic_words))[:limit]


def list_entries(name: str, texts: Mapping[str, Mapping[str, str]]) -> dict[str, list[JsonObject]]:
    """Return the reply to a prompt that asks for a list.

    Args:
        name: `claims`, `support`, `nuggets` or `nugget_support`.
        texts: the texts of the prompt; several texts of one kind are given by label.
    """
    if name == "claims":
        numbered = enumerate(texts["sentences"].values(), 1)
        return {"claims": [{"sentence": i, "claim": text} for i, text in numbered if any(map(str.isalpha, text))]}
    if name == "nuggets":
        return {"nuggets": [{"nugget": text, "vital": True} for text in split_sentences(str(texts["reference"]))]}
    if name == "nugget_support":
        answer = word_stems(str(texts["answer"]))
        shares = {label: precision(word_stems(text), answer) for label, text in texts["nuggets"].items()}
        return {"verdicts": [{"id": label, "support": _support_level(share)} for label, share in shares.items()]}
    sources = {label: word_stems(text) for label, text in texts["sources"].items()}
    claims = {label: word_stems(text) for label, text in texts["claims"].items()}
    return {
        "verdicts": [
            {
                "id": label,
                "supported_by": [
                    source for source, words in sources.items() if precision(claim, words) >= MIN_SUPPORT_SHARE
                ],
            }
            for label, claim in claims.items()
        ]
    }


def _support_level(share: float) -> str:
    return "full" if share >= MIN_SUPPORT_SHARE else "partial" if share >= MIN_GATE_SHARE else "none"


def _scored_reply(call: Call) -> str | None:
    name, texts = call.prompt.name, cast("Mapping[str, str]", call.texts)
    if call.prompt.shape.form in LIST_FORMS:
        return json.dumps(list_entries(name, cast("Mapping[str, Mapping[str, str]]", call.texts)), ensure_ascii=False)
    if name.startswith("synthesis_"):
        return json.dumps(make_question(name.removeprefix("synthesis_"), texts["context"], texts["examples"]))
    if name == "answerability":
        share = recall(word_stems(texts["context"]), word_stems(texts["question"]))
        return json.dumps({"reason": "recall of the question's words", "score": round(share, 6)})
    if name == "relevance":
        share = recall(word_stems(texts["passage"]), word_stems(texts["question"]))
        return json.dumps({"reason": "recall of the question's words", "score": min(3, int(share * 4))})
    if name == "generation":
        return extract_answer(texts["question"], texts["context"])
    if name == "follow_up":
        dialog = "\n".join([texts["question"], *cast("Mapping[str, str]", texts["history"]).values()])
        share = precision(word_stems(texts["answer"]), word_stems(dialog))
        return json.dumps({"reason": "precision of words against the dialog", "score": round(share, 6)})
    if name not in FORMULAS:
        return None
    formula, reference = FORMULAS[name]
    share = formula(word_stems(texts["answer"]), word_stems(texts[reference]))
    if name == "gate":
        is_refusal = texts["answer"].strip(" .!").casefold() in REFUSALS
        return "Yes" if share >= MIN_GATE_SHARE and not is_refusal else "No"
    return json.dumps({"reason": f"{formula.__name__} of words against the {reference}", "score": round(share, 6)})
