"""The words of incidents, by language."""

TEXTS = {
    "ru": {
        "opened": "Ночь {tier} ({source}): {what}.",
        "closed": "Ночь {tier} ({source}): снова в порядке, после {id}.",
        "regressed": "стало хуже, чем в последнем хорошем прогоне: {changes}",
        "invalid": "прогон недействителен: {error}",
        "failed": "прогон не удался: {error}",
        "change": "{metric} {a:.3f} → {b:.3f}",
    },
    "en": {
        "opened": "Night of {tier} ({source}): {what}.",
        "closed": "Night of {tier} ({source}): well again, after {id}.",
        "regressed": "worse than the last good evaluation: {changes}",
        "invalid": "the evaluation is invalid: {error}",
        "failed": "the evaluation failed: {error}",
        "change": "{metric} {a:.3f} → {b:.3f}",
    },
}
