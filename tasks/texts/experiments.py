"""The words of the pages over several evaluations, by language; braces are values."""

from tasks.texts.guidance import Text

OVER: dict[str, Text] = {
    "sweep": {"ru": "Варианты", "en": "Arms"},
    "sweep question": {"ru": "Какая модель, какой поиск, какая глубина?", "en": "Which model, retriever, depth?"},
    "robustness": {"ru": "Устойчивость", "en": "Robustness"},
    "robustness question": {
        "ru": "Тот же вопрос, записанный иначе: та же ли выдача, тот же ли ответ?",
        "en": "The same question asked otherwise: still found, still answered?",
    },
    "arm": {"ru": "Вариант", "en": "Arm"},
    "state": {"ru": "Состояние", "en": "State"},
    "front": {"ru": "Парето", "en": "Pareto"},
    "legend": {
        "ru": "* — на фронте Парето: никто не лучше, не дешевле и не быстрее сразу. Оценки разных судей несравнимы.",
        "en": "* = on the Pareto front: none is better, cheaper and faster at once. Different judges do not compare.",
    },
    "quality by cost": {
        "ru": "{metric} против цены: USD за 1000 ответов",
        "en": "{metric} by cost: USD for 1,000 answers",
    },
    "quality by latency": {"ru": "{metric} против задержки: медиана, мс", "en": "{metric} by latency: median, ms"},
    "pairs": {"ru": "Доказанные различия (p с поправкой Холма)", "en": "Differences that are shown (p by Holm)"},
    "none shown": {"ru": "Ни одно различие не доказано.", "en": "No difference is shown."},
    "pair": {"ru": "Сравнение", "en": "Comparison"},
    "metric": {"ru": "Метрика", "en": "Metric"},
    "difference": {"ru": "Разность, 95 % интервал", "en": "Difference, 95 % interval"},
    "p": {"ru": "p", "en": "p"},
    "judges": {"ru": "Судьи и люди", "en": "Judges and people"},
    "judge": {"ru": "Судья", "en": "Judge"},
    "kind": {"ru": "Как спрошено", "en": "Asked"},
    "changed": {"ru": "Изменено", "en": "Changed"},
    "same first": {"ru": "Тот же первый результат", "en": "Same first result"},
    "same answer": {"ru": "Тот же ответ", "en": "Same answer"},
    "typos": {"ru": "с опечатками", "en": "with typing errors"},
    "yo": {"ru": "«е» вместо «ё»", "en": "«е» for «ё»"},
    "lower": {"ru": "строчными", "en": "in lower case"},
    "layout": {"ru": "не в той раскладке", "en": "in the wrong layout"},
    "paraphrase": {"ru": "другими словами", "en": "in other words"},
    "tier1": {"ru": "Поиск", "en": "Retrieval"},
    "tier3": {"ru": "Вся система", "en": "End to end"},
    "no model": {
        "ru": "Пересказать вопрос может только языковая модель (YARUS_GENERATOR__BASE_URL).",
        "en": "Only a language model can ask in other words (YARUS_GENERATOR__BASE_URL).",
    },
    "star": {
        "ru": "* — различие доказано (p с поправкой Холма < 0,05).",
        "en": "* = the difference is shown (p by Holm < 0.05).",
    },
}


def words(key: str, **values: object) -> Text:
    """The words of that name in every language, with values put in."""
    return {language: text.format(**values) for language, text in OVER[key].items()}
