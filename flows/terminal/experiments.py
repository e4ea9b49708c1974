"""Sweeps and robustness probes for people, on stdout."""

from typing import Any

from rich.table import Table

from flows.terminal.summary import coloured, new_console, plain
from tasks.experiments.sweep_table import figure_of, interval
from tasks.texts.terminal import WORDS

RU = {
    "sweep": "Сравнение вариантов",
    "arm": "Вариант",
    "state": "Состояние",
    "cost": "USD / 1000",
    "latency": "p50 / p95, мс",
    "front": "Парето",
    "pairs": "Различия (p с поправкой Холма по всем парам)",
    "better": "{metric}: «{b}» против «{a}»: {difference:+.3f} ({ci_low:+.3f} … {ci_high:+.3f}), p = {p_holm:.3f}",
    "none differ": "Ни одно различие не доказано: нужно больше вопросов (--limit) или различия малы.",
    "not compared": "Не сравнивались {n} пар: {reason}.",
    "different judges": "оценки разных судей несравнимы",
    "judges": "Судьи и люди (оценки журнала)",
    "judge": "Судья",
    "legend": "* — на фронте Парето: никто не лучше, не дешевле и не быстрее сразу.",
    "failed": "{arm}: {error}",
    "next": "Продолжить с несделанного: yarus sweep --resume {id}",
    "robustness": "Устойчивость к другой записи вопроса",
    "kind": "Как спрошено",
    "changed": "Изменено",
    "same first": "Тот же первый результат",
    "same answer": "Тот же ответ",
    "typos": "опечатки",
    "yo": "«е» вместо «ё»",
    "lower": "строчными",
    "layout": "не та раскладка",
    "paraphrase": "другими словами",
    "differences": "Разность с исходной записью, 95 % интервал; * — доказана (p с поправкой Холма < 0,05)",
    "no paraphrase": "Пересказ требует языковой модели (YARUS_GENERATOR__BASE_URL).",
}
EN = {
    "sweep": "Arms compared",
    "arm": "Arm",
    "state": "State",
    "cost": "USD / 1,000",
    "latency": "p50 / p95, ms",
    "front": "Pareto",
    "pairs": "Differences (p by Holm over all pairs)",
    "better": "{metric}: {b!r} against {a!r}: {difference:+.3f} ({ci_low:+.3f} to {ci_high:+.3f}), p = {p_holm:.3f}",
    "none differ": "No difference is shown: more questions are needed (--limit), or the differences are small.",
    "not compared": "{n} pairs were not compared: {reason}.",
    "different judges": "scores of different judges cannot be compared",
    "judges": "Judges and people (scores of the log)",
    "judge": "Judge",
    "legend": "* = on the Pareto front: none is better, cheaper and faster at once.",
    "failed": "{arm}: {error}",
    "next": "Go on with what is not done: yarus sweep --resume {id}",
    "robustness": "The same questions asked otherwise",
    "kind": "Asked",
    "changed": "Changed",
    "same first": "Same first result",
    "same answer": "Same answer",
    "typos": "with typing errors",
    "yo": "«е» for «ё»",
    "lower": "in lower case",
    "layout": "in the wrong layout",
    "paraphrase": "in other words",
    "differences": "Difference from the question as it was, 95 % interval; * = shown (p by Holm < 0.05)",
    "no paraphrase": "A paraphrase needs a language model (YARUS_GENERATOR__BASE_URL).",
}
TEXTS = {"ru": RU, "en": EN}
SHOWN = ("improved", "regressed", "changed")


def print_sweep(document: dict[str, Any], language: str) -> None:
    """The table of arms, the differences that are shown, the judges beside people, and what failed."""
    texts, console = TEXTS[language], new_console()
    table = Table(title=texts["sweep"], box=None, title_justify="left", title_style="bold")
    for name in (texts["arm"], *document["metrics"], texts["cost"], texts["latency"], texts["front"]):
        table.add_column(name)
    for arm in document["arms"]:
        cells = [interval(arm["metrics"].get(name)) for name in document["metrics"]]
        if arm["state"] != "completed":
            cells[0] = coloured(WORDS[language][arm["state"]], arm["state"])
        latency = " / ".join(filter(None, (figure_of(arm["latency_ms_p50"]), figure_of(arm["latency_ms_p95"]))))
        table.add_row(plain(arm["arm"]), *cells, figure_of(arm["cost_usd"]), latency, "*" if arm["pareto"] else "")
    console.print("", table, texts["legend"])
    _print_pairs(document["pairs"], texts)
    if document["judges"]:
        _print_judges(document["judges"], texts)
    for said in (*document["arms"], *document["judges"]):
        if said["error"]:
            console.print(plain(texts["failed"].format(arm=said["arm"], error=said["error"])), style="yellow")
    if document["state"] in ("failed", "cancelled"):
        console.print(texts["next"].format(id=document["sweep_id"]))


def print_robustness(document: dict[str, Any], language: str) -> None:
    """A row a kind: how many questions it changes, and what that does to ranks and answers."""
    texts, console = TEXTS[language], new_console()
    for tier, kinds in document["tiers"].items():
        names = document["metrics"][tier]
        same = "same first" if tier == "tier1" else "same answer"
        table = Table(title=f"{texts['robustness']}: {WORDS[language][tier]}", box=None, title_justify="left")
        for name in (texts["kind"], texts["changed"], texts[same], *names):
            table.add_column(name)
        for kind, said in kinds.items():
            changed = f"{said['n_changed']} / {said['n']}" if said["n"] else ""
            cells = [_difference(said["metrics"].get(name)) for name in names]
            table.add_row(texts[kind], changed, interval(said["same"]), *cells)
        console.print("", table)
        for kind, said in kinds.items():
            if said["error"]:
                console.print(plain(f"{texts[kind]}: {said['error']}"), style="yellow")
    console.print(texts["differences"])


def _difference(said: dict[str, Any] | None) -> str:
    if said is None or said["difference"] is None:
        return "—"
    interval = "" if said["ci_low"] is None else f" ({said['ci_low']:+.3f} … {said['ci_high']:+.3f})"
    return f"{said['difference']:+.3f}{interval}{'*' if said['verdict'] in SHOWN else ''}"


def _print_pairs(pairs: list[dict[str, Any]], texts: dict[str, str]) -> None:
    console = new_console()
    told = [pair for pair in pairs if pair["verdict"] is not None]
    found = [pair for pair in told if pair["verdict"] in SHOWN]
    if told:
        console.print(f"\n{texts['pairs']}", style="bold")
        for pair in found:
            console.print(plain(texts["better"].format(**pair)), soft_wrap=True)
        if not found:
            console.print(texts["none differ"])
    untold = {(pair["a"], pair["b"]) for pair in pairs if pair["reason"] == "judged by different judges"}
    if untold:
        console.print(texts["not compared"].format(n=len(untold), reason=texts["different judges"]))


def _print_judges(judges: list[dict[str, Any]], texts: dict[str, str]) -> None:
    names = ("human_weighted_kappa", "human_spearman", "consistency_score")
    table = Table(title=texts["judges"], box=None, title_justify="left", title_style="bold")
    for name in (texts["judge"], *names):
        table.add_column(name)
    for said in judges:
        table.add_row(plain(said["judge_model"] or ""), *(interval(said["metrics"].get(name)) for name in names))
    new_console().print("", table)
