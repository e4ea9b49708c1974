"""The words of the pages, by language. `$` stands for nothing: braces are values, as in str.format."""

from markupsafe import Markup, escape

from tasks.texts.guidance import LABELS, STAGES, TIER_NAMES, Text

LANGUAGES = ("ru", "en")
TIERS: dict[str, tuple[Text, Text]] = {
    "tier0": (
        {"ru": "Уровень 0 · Эмбеддинги", "en": "Tier 0 · Embeddings"},
        {"ru": "Держатся ли страницы вместе?", "en": "Do pages hold together?"},
    ),
    "tier1": (
        {"ru": "Уровень 1 · Поиск", "en": "Tier 1 · Retrieval"},
        {"ru": "Находится ли нужный фрагмент?", "en": "Is the right passage found?"},
    ),
    "tier2": (
        {"ru": "Уровень 2 · Генерация", "en": "Tier 2 · Generation"},
        {"ru": "Хорош ли ответ по контексту?", "en": "Good with the right context?"},
    ),
    "tier3": (
        {"ru": "Уровень 3 · Вся система", "en": "Tier 3 · End to end"},
        {"ru": "Полезен ли ответ системы?", "en": "Is the system's answer useful?"},
    ),
    "real_users": (
        {"ru": "Реальные пользователи", "en": "Real users"},
        {"ru": "Находится ли подтверждённое?", "en": "Found what people confirmed?"},
    ),
    "judge": (
        {"ru": "Судья", "en": "Judge"},
        {"ru": "Можно ли верить его оценкам?", "en": "Can its scores be relied on?"},
    ),
    "judge_pipeline": (
        {"ru": "Production judge", "en": "Production judge"},
        {"ru": "Только ли верное показано?", "en": "Are only right answers shown?"},
    ),
    "ux": (
        {"ru": "Удобство", "en": "User experience"},
        {"ru": "Поможет ли кэш ответов?", "en": "Would a cache help?"},
    ),
}
SHORT_TIERS: dict[str, Text] = {
    "tier0": {"ru": "Эмбеддинги", "en": "Embeddings"},
    "tier1": {"ru": "Поиск", "en": "Retrieval"},
    "tier2": {"ru": "Генерация", "en": "Generation"},
    "tier3": {"ru": "Вся система", "en": "End to end"},
    "real_users": {"ru": "Люди", "en": "Real users"},
    "judge": {"ru": "Судья", "en": "Judge"},
    "judge_pipeline": {"ru": "Production judge", "en": "Production judge"},
    "ux": {"ru": "Удобство", "en": "Experience"},
}
WORDS: dict[str, Text] = {
    # the frame
    "overview": {"ru": "Обзор", "en": "Overview"},
    "trends": {"ru": "История", "en": "Trends"},
    "about": {"ru": "Сведения", "en": "About"},
    "report": {"ru": "Отчёт", "en": "Report"},
    "all reports": {"ru": "Все прогоны", "en": "All evaluations"},
    "tiers": {"ru": "Уровни", "en": "Tiers"},
    "skip": {"ru": "К содержанию", "en": "Skip to the content"},
    "pages": {"ru": "Страницы отчёта", "en": "Pages of the report"},
    "language": {"ru": "Язык", "en": "Language"},
    "theme": {"ru": "Тема", "en": "Theme"},
    "theme auto": {"ru": "Как в системе", "en": "As the system"},
    "theme light": {"ru": "Светлая", "en": "Light"},
    "theme dark": {"ru": "Тёмная", "en": "Dark"},
    "print": {"ru": "Печать", "en": "Print"},
    "source": {"ru": "Источник", "en": "Source"},
    "made": {"ru": "Отчёт от {at}", "en": "Made {at}"},
    "version": {"ru": "Версия системы", "en": "System version"},
    "no script": {
        "ru": "Без JavaScript видны таблицы, но не случаи и графики.",
        "en": "Without JavaScript the tables are here, but neither cases nor charts.",
    },
    # overview
    "metric": {"ru": "Метрика", "en": "Metric"},
    "value": {"ru": "Значение", "en": "Value"},
    "interval": {"ru": "95 % интервал", "en": "95 % interval"},
    "measured": {"ru": "Измерено", "en": "Measured"},
    "grade": {"ru": "Оценка", "en": "Grade"},
    "change": {"ru": "Изменение", "en": "Change"},
    "tier": {"ru": "Уровень", "en": "Tier"},
    "weakest": {"ru": "слабее всего", "en": "weakest"},
    "no grade": {"ru": "без оценки", "en": "not graded"},
    "not measured": {"ru": "не измерено", "en": "not measured"},
    "first": {"ru": "первый прогон", "en": "first evaluation"},
    "improved": {"ru": "лучше", "en": "improved"},
    "regressed": {"ru": "хуже", "en": "regressed"},
    "changed": {"ru": "изменилось", "en": "changed"},
    "no difference shown": {"ru": "без изменений", "en": "no difference shown"},
    "inconclusive": {"ru": "неясно", "en": "inconclusive"},
    "not compared": {"ru": "не сравнивалось", "en": "not compared"},
    "unpaired": {"ru": "не сравнимы", "en": "not comparable"},
    "legend": {
        "ru": "Точка — значение, полоса — 95 % интервал, деления — границы оценок. «Неясно»: случаев мало, чтобы "
        "отличить "
        "перемену от случайной.",
        "en": "The dot is the value, the band its 95 % interval, the ticks are the bounds of the grades. "
        "“Inconclusive”: too few cases to tell a change from chance.",
    },
    "goals": {"ru": "Что читать для какой цели", "en": "What to read for which question"},
    "goal": {"ru": "Цель", "en": "Question"},
    "what next": {"ru": "Что делать дальше", "en": "What to do next"},
    "show cases": {"ru": "Показать случаи", "en": "Show the cases"},
    "completed": {"ru": "завершён", "en": "completed"},
    "invalid": {"ru": "недействителен", "en": "invalid"},
    "failed": {"ru": "сбой", "en": "failed"},
    "cancelled": {"ru": "остановлен", "en": "cancelled"},
    "running": {"ru": "идёт", "en": "running"},
    "stand-in": {
        "ru": "Без языковой модели: отвечали и судили упрощённые замены. Числа показывают ход работы, не качество "
        "модели",
        "en": "Without a language model: offline stand-ins answered and judged. The numbers show how it works, not how "
        "good a model is",
    },
    # a tier
    "charts": {"ru": "Распределения", "en": "Distributions"},
    "metrics": {"ru": "Метрики", "en": "Metrics"},
    "cases": {"ru": "Случаи", "en": "Cases"},
    "n cases": {"ru": "Вопросов", "en": "Questions"},
    "coverage": {"ru": "Покрытие", "en": "Coverage"},
    "started": {"ru": "Начало", "en": "Started"},
    "took": {"ru": "Длительность", "en": "Took"},
    "seconds": {"ru": "{n} с", "en": "{n} s"},
    "how": {"ru": "Как считается", "en": "How it is computed"},
    "reading": {"ru": "Как читать", "en": "How to read it"},
    "trust": {"ru": "Насколько верить", "en": "How far to trust it"},
    "scale": {"ru": "Шкала", "en": "Scale"},
    "scale two": {
        "ru": "хорошо с {good}, отлично выше {best}",
        "en": "good from {good}, excellent above {best}",
    },
    "scale three": {
        "ru": "слабая с {weak}, разумная выше {good}, сильная выше {best}",
        "en": "weak from {weak}, reasonable above {good}, strong above {best}",
    },
    "range": {"ru": "от {low} до {high}", "en": "from {low} to {high}"},
    "no end": {"ru": "без предела", "en": "no limit"},
    "better higher": {"ru": "больше — лучше", "en": "higher is better"},
    "better lower": {"ru": "меньше — лучше", "en": "lower is better"},
    "better neither": {"ru": "само по себе не хорошо и не плохо", "en": "neither direction is better"},
    "why none": {"ru": "Почему нет: {reason}", "en": "Why there is none: {reason}"},
    "strata": {"ru": "По оценкам пользователей", "en": "By what users said"},
    "all": {"ru": "все вопросы", "en": "all questions"},
    "confirmed": {"ru": "подтверждено (оценка 5)", "en": "confirmed (score 5)"},
    "agreement": {"ru": "без ясной оценки", "en": "no clear score"},
    "contradicted": {"ru": "отвергнуто (оценка 1)", "en": "rejected (score 1)"},
    "distributions": {"ru": "Как распределены случаи", "en": "How the cases are distributed"},
    "distributions hint": {
        "ru": "По горизонтали значение, по вертикали число случаев; сплошная черта — среднее, пунктир — границы "
        "оценок.",
        "en": "Across the value, upwards the number of cases; the solid line is the mean, dotted ones bound the "
        "grades.",
    },
    "ranks": {"ru": "На каком месте первый верный результат", "en": "Rank of the first right result"},
    "not found": {"ru": "нет", "en": "none"},
    "statuses": {"ru": "Что удалось измерить", "en": "What could be measured"},
    "reasons": {"ru": "Причины", "en": "Reasons"},
    "stages": {"ru": "Где ответ ломается впервые", "en": "Where answers fail first"},
    "latency": {"ru": "Время ответа", "en": "Time to answer"},
    "latency hint": {
        "ru": "Пунктир — половина и 19 из 20 вопросов; самые долгие 2 % собраны в последнем столбце.",
        "en": "Dotted: half and 19 of 20 of the questions; the longest 2 % are gathered in the last bar.",
    },
    "cost": {"ru": "Токены и цена", "en": "Tokens and cost"},
    "tokens in": {"ru": "Прочитано токенов", "en": "Tokens read"},
    "tokens out": {"ru": "Написано токенов", "en": "Tokens written"},
    "usd": {"ru": "Цена, USD", "en": "Cost, USD"},
    "free": {"ru": "Языковых моделей не спрашивали.", "en": "No language model was asked."},
    "topics": {"ru": "Темы корпуса", "en": "Topics of the corpus"},
    "no cases": {"ru": "Случаев нет: {why}", "en": "No cases: {why}"},
    "file gone": {
        "ru": "Файл со случаями не читается, поэтому нет случаев и распределений; числа выше — из базы.",
        "en": "The file with the cases cannot be read: no cases and no distributions; the numbers above are in SQL.",
    },
    "loading": {"ru": "Открывается…", "en": "Opening…"},
    # comparison
    "comparison": {"ru": "Что изменилось", "en": "What changed"},
    "compared": {
        "ru": "Сравнение с прогоном {id} от {at}: {n} общих вопросов.",
        "en": "Compared with {id} of {at}: {n} questions in common.",
    },
    "before": {"ru": "Было", "en": "Before"},
    "after": {"ru": "Стало", "en": "After"},
    "difference": {"ru": "Разница", "en": "Difference"},
    "verdict": {"ru": "Вывод", "en": "Verdict"},
    "detectable": {"ru": "Заметна от", "en": "Detectable from"},
    "detectable hint": {
        "ru": "«Заметна от»: наименьшая разница, которую столько случаев показали бы четыре раза из пяти. p — после "
        "поправки Холма.",
        "en": "“Detectable from”: the smallest difference that so many cases show four times in five. p is Holm's.",
    },
    "p": {"ru": "p", "en": "p"},
    "differs": {
        "ru": "Прогоны не сравнимы, числа лишь поставлены рядом. Различаются:",
        "en": "Not comparable, only side by side. They differ in:",
    },
    "broke": {"ru": "сломалось", "en": "broke"},
    "fixed": {"ru": "починилось", "en": "fixed"},
    "changed_status": {"ru": "сменило статус", "en": "changed status"},
    "slice group": {"ru": "Страница или человек", "en": "Page or person"},
    "slice length": {"ru": "Длина вопроса", "en": "Length of the question"},
    "slice type": {"ru": "Вид вопроса", "en": "Kind of question"},
    "slice answerable": {"ru": "Есть ли ответ", "en": "Is there an answer"},
    "slice topic": {"ru": "Тема", "en": "Topic"},
    "slice page": {"ru": "Страница", "en": "Page"},
    "slice stratum": {"ru": "Часть журнала", "en": "Part of the log"},
    "slices hint": {
        "ru": "Главная метрика по частям. Частей много: случайные «перемены» среди них ожидаемы.",
        "en": "The main metric by slices. There are many: some will seem to change by chance.",
    },
    "more metrics": {"ru": "Ещё метрик: {n}", "en": "{n} more metrics"},
    "slices": {"ru": "По частям", "en": "By slices"},
    "no comparison": {"ru": "Сравнить не с чем: {why}", "en": "Nothing to compare with: {why}"},
    "no earlier": {"ru": "раньше таких прогонов не было", "en": "there is no earlier evaluation of this kind"},
    # trends
    "trends hint": {
        "ru": "Линия соединяет только сравнимые прогоны; вертикальная черта — разрыв: сменились вопросы, метрика "
        "или судья. "
        "Полоса — 95 % интервал, пунктир — пределы обычного, кружок — прогон вне их.",
        "en": "The line joins comparable evaluations only; a vertical line is a break: questions, metric or judge "
        "changed. "
        "The band is the 95 % interval, dots bound the usual, a ring marks a night outside.",
    },
    "few nights": {
        "ru": "Истории пока нет: нужно хотя бы два прогона.",
        "en": "No history yet: it takes two evaluations.",
    },
    "first out": {"ru": "Вышло за пределы обычного: {id}", "en": "Out of the usual: {id}"},
    "noise": {"ru": "Сама по себе колеблется на ±{band}", "en": "Moves by itself within ±{band}"},
    # the corpus
    "corpus": {"ru": "Корпус", "en": "Corpus"},
    "corpus question": {
        "ru": "О чём спрашивают и есть ли об этом тексты?",
        "en": "What do people ask, and is it written?",
    },
    "used chunks": {"ru": "Фрагментов находилось", "en": "Chunks ever retrieved"},
    "used pages": {"ru": "Страниц находилось", "en": "Pages ever retrieved"},
    "write next": {"ru": "О чём написать", "en": "What to write next"},
    "write next hint": {
        "ru": "Темы, где ответа в корпусе больше всего не хватает.",
        "en": "Topics for which the corpus lacks an answer most often.",
    },
    "questions without": {"ru": "без ответа: {n}", "en": "without an answer: {n}"},
    "dead": {"ru": "Что не нашлось ни разу", "en": "Never retrieved"},
    "dead hint": {"ru": "Устарело, повторяется или плохо ищется.", "en": "Outdated, repeated, or hard to find."},
    "map": {"ru": "Карта вопросов и текстов", "en": "Map of questions and texts"},
    "map hint": {
        "ru": "Серые точки — тексты, цветные — вопросы; рядом лежит похожее. Где вопросы без серых точек, там не о чем "
        "отвечать. Две оси передают лишь часть сходства.",
        "en": "Grey dots are texts, coloured ones questions; what is alike lies near. Questions without grey dots have "
        "nothing to be answered from. Two axes hold only a part of the likeness.",
    },
    "topic": {"ru": "Тема", "en": "Topic"},
    "topic found": {"ru": "Нужное находится", "en": "Found"},
    "topic failed": {"ru": "Ответ плох", "en": "Answer fails"},
    "topic missing": {"ru": "Нет ответа в корпусе", "en": "Not in the corpus"},
    # the foot
    "evaluation": {"ru": "Прогон", "en": "Evaluation"},
    "key": {"ru": "Ключ сравнимости", "en": "Comparability key"},
    "case set": {"ru": "Набор вопросов, SHA-256", "en": "Case set, SHA-256"},
    "file": {"ru": "Файл", "en": "File"},
    "commit": {"ru": "Коммит", "en": "Commit"},
    "dirty": {"ru": "с незаписанными правками", "en": "with uncommitted changes"},
    "flow run": {"ru": "Запуск Prefect", "en": "Prefect flow run"},
    "settings": {"ru": "Настройки, без секретов", "en": "Settings, without secrets"},
    "parameters": {"ru": "Параметры", "en": "Parameters"},
    "resolved": {"ru": "Во что они вылились", "en": "What they came to"},
    "versions": {"ru": "Версии", "en": "Versions"},
    "notes": {"ru": "Замечания", "en": "Notes"},
    "system": {"ru": "Система", "en": "System"},
    "state": {"ru": "Состояние", "en": "State"},
    # the index
    "index title": {"ru": "Все прогоны", "en": "All evaluations"},
    "newest report": {"ru": "Новейший отчёт", "en": "Newest report"},
    "reports": {"ru": "Отчёты", "en": "Reports"},
    "no report": {"ru": "нет отчёта", "en": "no report"},
    "index pages": {"ru": "Страницы списка", "en": "Pages of the list"},
    "of": {"ru": "из", "en": "of"},
    "newest listed": {"ru": "новейших", "en": "newest"},
    "newer": {"ru": "новее", "en": "newer"},
    "older": {"ru": "старее", "en": "older"},
    "none yet": {"ru": "Прогонов пока нет: yarus run tier1", "en": "No evaluations yet: yarus run tier1"},
    "make one": {"ru": "Создать отчёт: yarus report {id}", "en": "Make a report: yarus report {id}"},
}
STATUSES: dict[str, Text] = {
    "ok": {"ru": "измерено", "en": "measured"},
    "sut_error": {"ru": "ошибка системы", "en": "error of the system"},
    "sut_refusal": {"ru": "отказ отвечать", "en": "refusal to answer"},
    "judge_error": {"ru": "ошибка судьи", "en": "error of the judge"},
    "parse_error": {"ru": "ответ судьи не прочитан", "en": "unreadable reply of the judge"},
    "unlabelled": {"ru": "нет разметки", "en": "no label"},
    "stale_label": {"ru": "разметка устарела", "en": "stale label"},
    "not_applicable": {"ru": "неприменимо", "en": "not applicable"},
    "skipped_budget": {"ru": "не хватило бюджета", "en": "budget spent"},
}
SCRIPT: dict[str, Text] = {
    "search": {"ru": "Поиск по вопросам и ответам", "en": "Search questions and answers"},
    "status": {"ru": "Статус", "en": "Status"},
    "failure": {"ru": "Где сломалось", "en": "Failed in"},
    "stratum": {"ru": "Часть журнала", "en": "Part of the log"},
    "any": {"ru": "любой", "en": "any"},
    "metric": {"ru": "Метрика", "en": "Metric"},
    "from": {"ru": "от", "en": "from"},
    "to": {"ru": "до", "en": "to"},
    "reset": {"ru": "Сбросить", "en": "Reset"},
    "found": {"ru": "Найдено {n} из {of}", "en": "{n} of {of} found"},
    "none found": {"ru": "Ничего не найдено. Ослабьте условия.", "en": "Nothing found. Loosen the filters."},
    "question": {"ru": "Вопрос", "en": "Question"},
    "text": {"ru": "Текст", "en": "Text"},
    "answer": {"ru": "Ответ", "en": "Answer"},
    "answers": {"ru": "Повторные ответы", "en": "Repeated answers"},
    "reference": {"ru": "Эталон", "en": "Reference"},
    "context": {"ru": "Контекст", "en": "Context"},
    "ranking": {"ru": "Что нашёл поиск", "en": "What was retrieved"},
    "relevant": {"ru": "верное", "en": "relevant"},
    "missed": {"ru": "не найдено", "en": "not retrieved"},
    "nothing retrieved": {"ru": "Поиск не вернул ничего.", "en": "Nothing was retrieved."},
    "judge": {"ru": "Судья", "en": "Judge"},
    "reasons": {"ru": "Доводы", "en": "Reasons"},
    "raw": {"ru": "Ответ как получен", "en": "Reply as received"},
    "values": {"ru": "Значения", "en": "Values"},
    "more": {"ru": "Ещё о случае", "en": "More of the case"},
    "close": {"ru": "Закрыть", "en": "Close"},
    "earlier": {"ru": "Предыдущий", "en": "Previous"},
    "later": {"ru": "Следующий", "en": "Next"},
    "show all": {"ru": "Показать всё: {n} знаков", "en": "Show all {n} characters"},
    "page": {"ru": "{from}–{to} из {of}", "en": "{from}–{to} of {of}"},
    "repeat": {"ru": "повтор {n}", "en": "repeat {n}"},
    "no such case": {"ru": "Такого случая здесь нет: {id}", "en": "There is no such case here: {id}"},
    "cannot open": {
        "ru": "Данные не открываются: нужен браузер не старше 2023 года.",
        "en": "The data cannot be opened: it takes a browser of 2023 or newer.",
    },
    "before": {"ru": "Было", "en": "Before"},
    "after": {"ru": "Стало", "en": "After"},
    "diff": {"ru": "Что изменилось в ответе", "en": "What changed in the answer"},
    "same answer": {"ru": "Ответ не изменился.", "en": "The answer did not change."},
    "empty": {"ru": "пусто", "en": "empty"},
    "yes": {"ru": "да", "en": "yes"},
    "no": {"ru": "нет", "en": "no"},
    "map hit": {"ru": "нужное найдено", "en": "found"},
    "map miss": {"ru": "не найдено", "en": "not found"},
    "map missing": {"ru": "ответа нет в корпусе", "en": "not in the corpus"},
    "map unknown": {"ru": "неизвестно", "en": "unknown"},
    "map text": {"ru": "тексты", "en": "texts"},
    "not found": WORDS["not found"],
    **{f"list {name}": WORDS[name] for name in ("broke", "fixed", "changed_status")},
    **{f"stratum {name}": WORDS[name] for name in ("confirmed", "agreement", "contradicted")},
}


def both(text: Text) -> Markup:
    """A text in every language; the page's style shows one."""
    if len(set(text.values())) == 1:
        return escape(text["ru"])
    return Markup("").join(
        Markup('<span lang="{}">{}</span>').format(language, text[language]) for language in LANGUAGES
    )


def said(key: str, **values: object) -> Markup:
    """The words of that name in every language, with values put in."""
    return both({language: sentence.format(**values) for language, sentence in WORDS[key].items()})


def said_or(key: str, otherwise: str) -> Markup:
    """The words of that name, or else a text as it is."""
    return both(WORDS[key]) if key in WORDS else escape(otherwise)


def spoken(language: str) -> dict[str, str]:
    """The words that the page's script needs, in one language."""
    words = {key: text[language] for key, text in SCRIPT.items()}
    words |= {f"status {name}": text[language] for name, text in STATUSES.items()}
    words |= {f"failure {name}": text[language] for name, text in STAGES.items()}
    return words | {f"metric {name}": text[language] for name, text in LABELS.items()}


__all__ = [
    "LABELS",
    "LANGUAGES",
    "SHORT_TIERS",
    "STAGES",
    "STATUSES",
    "TIERS",
    "TIER_NAMES",
    "WORDS",
    "both",
    "said",
    "spoken",
]
