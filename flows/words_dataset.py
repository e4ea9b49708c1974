"""The words of `yarus dataset`, by language."""

RU = {
    "frozen": "Набор {name}: {n_cases} вопросов из {source}, хеш {sha256}",
    "evaluate": "Измерить на нём: yarus run tier1 --source {source} --cases {name}",
    "set": "Набор",
    "source": "Источник",
    "n cases": "Вопросов",
    "hash": "Хеш",
    "rule": "Как выбран",
    "frozen at": "Заморожен",
    "no sets": "Наборов ещё нет; заморозьте первый: yarus dataset freeze ИМЯ --source ИСТОЧНИК",
    "added": "Добавлено",
    "removed": "Убрано",
    "reworded": "Другой текст вопроса",
    "relabelled": "Другая разметка",
    "without time": "Вопросов без времени, не вошедших ни в одну часть: {n}.",
}
EN = {
    "frozen": "Set {name}: {n_cases} questions of {source}, hash {sha256}",
    "evaluate": "Evaluate it: yarus run tier1 --source {source} --cases {name}",
    "set": "Set",
    "source": "Source",
    "n cases": "Questions",
    "hash": "Hash",
    "rule": "How chosen",
    "frozen at": "Frozen",
    "no sets": "no sets yet; freeze one: yarus dataset freeze NAME --source SOURCE",
    "added": "Added",
    "removed": "Removed",
    "reworded": "Reworded",
    "relabelled": "Relabelled",
    "without time": "{n} questions have no time and are in neither half.",
}
WORDS = {"ru": RU, "en": EN}
