"""The words of what Prefect's UI shows, by language."""

RU = {
    "metric": "Метрика",
    "value": "Значение",
    "interval": "95 % интервал",
    "measured": "Измерено",
    "grade": "Оценка",
    "change": "Изменение",
    "tier": "Уровень",
    "state": "Состояние",
    "worst": "Худшие случаи",
    "case": "Вопрос",
    "none": "Худших нет: у всех измеренных вопросов лучшее значение.",
    "report": "Отчёт",
    "invalid": "Прогон недействителен, сравнивать его нельзя",
    "improved": "лучше",
    "regressed": "хуже",
    "changed": "другое",
    "no difference shown": "разницы нет",
    "inconclusive": "неясно",
    "completed": "завершён",
    "failed": "сбой",
    "cancelled": "остановлен",
    "gate": "Пороги",
    "pass": "пройдены",
    "fail": "не пройдены",
}


EN = {
    "metric": "Metric",
    "value": "Value",
    "interval": "95 % interval",
    "measured": "Measured",
    "grade": "Grade",
    "change": "Change",
    "tier": "Tier",
    "state": "State",
    "worst": "Worst cases",
    "case": "Question",
    "none": "There are none: every question that was measured has the best value.",
    "report": "Report",
    "invalid": "The evaluation is invalid and cannot be compared",
    **{name: name for name in ("improved", "regressed", "changed", "no difference shown", "inconclusive")},
    **{name: name for name in ("completed", "failed", "cancelled", "pass", "fail")},
    "gate": "Gate",
}


WORDS = {"ru": RU, "en": EN}
