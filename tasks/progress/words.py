"""How far an evaluation is, in one line."""

from yarus.tasks.progress.counts import Progress
from yarus.tasks.texts import texts

MINUTE, HOUR = 60, 3_600


def line(of: Progress, language: str) -> str:
    """Which evaluation, cases done, speed, time left, failures, tokens and cost; what is not known is left out."""
    words = texts("progress", language)
    place = words["place"].format(number=of.place[0], of=of.place[1]) if of.place else ""
    parts = [f"{place}{of.tier} {of.source}", words["done"].format(done=of.done, all=of.n_cases, percent=_percent(of))]
    if of.done < of.n_cases and len(of.steps) > 1:
        parts += [words[step].format(n=of.counts[step]) for step in of.steps[:-1] if of.counts[step] > of.done]
    if of.replies < of.calls:
        parts.append(words["calls"].format(done=of.replies, all=of.calls))
    if (speed := of.per_second) is not None:
        parts.append(words["a second" if speed >= 1 else "a minute"].format(n=speed if speed >= 1 else MINUTE * speed))
    if (left_s := of.left_s) is not None and of.share < 1:
        parts.append(words["left"].format(time=clock(left_s)))
    if of.failed:
        parts.append(words["failed"].format(n=of.failed))
    if of.tokens:
        parts.append(words["tokens"].format(n=of.tokens) if of.tokens < 10_000 else _thousands(of, words))
    if of.cost_usd is not None:
        parts.append(f"${of.cost_usd:.4f}" if of.cost_usd < 1 else f"${of.cost_usd:.2f}")
    return " · ".join(parts)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds, as on a clock: 0:07, 12:30, 1:05:00."""
    whole = round(seconds)
    hours, minutes, rest = whole // HOUR, whole % HOUR // MINUTE, whole % MINUTE
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _percent(of: Progress) -> int:
    return int(100 * of.share)


def _thousands(of: Progress, words: dict[str, str]) -> str:
    return words["thousands"].format(n=of.tokens / 1_000)
