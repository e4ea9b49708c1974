"""The sentences of tasks/results/guidance.py, and the names of tiers and headline metrics, by language."""

Text = dict[str, str]
"""Language -> text."""

TIER_NAMES: dict[str, Text] = {
    "tier0": {"ru": "эмбеддинги", "en": "embeddings"},
    "tier1": {"ru": "поиск", "en": "retrieval"},
    "tier2": {"ru": "генерация", "en": "generation"},
    "tier3": {"ru": "вся система", "en": "the whole system"},
    "real_users": {"ru": "поиск для реальных пользователей", "en": "retrieval for real users"},
    "judge": {"ru": "судья", "en": "the judge"},
    "judge_pipeline": {"ru": "production judge", "en": "the production judge"},
    "ux": {"ru": "кэш и диалоги", "en": "cache and dialogs"},
}
LABELS: dict[str, Text] = {
    "silhouette_score": {"ru": "Обособленность страниц", "en": "Pages kept apart"},
    "hit_rate@1": {"ru": "Верное на первом месте", "en": "Right one first"},
    "mrr": {"ru": "Место первого верного", "en": "Rank of the first right one"},
    "ndcg@10": {"ru": "Порядок первой десятки", "en": "Order of the first ten"},
    "avg_faithfulness": {"ru": "Верность контексту", "en": "Faithful to the context"},
    "avg_answer_relevance": {"ru": "Ответ по существу вопроса", "en": "To the point of the question"},
    "avg_e2e_score": {"ru": "Полезность ответа", "en": "Usefulness of the answer"},
    "avg_semantic_similarity": {"ru": "Близость к эталону", "en": "Near the reference"},
    "consistency_score": {"ru": "Согласие судьи с собой", "en": "Judge agrees with itself"},
    "weighted_kappa": {"ru": "Согласие сверх случая", "en": "Agreement beyond chance"},
    "accuracy": {"ru": "Верные решения", "en": "Right decisions"},
    "precision": {"ru": "Показанные — верны", "en": "Shown ones are right"},
    "recall": {"ru": "Верные — показаны", "en": "Right ones are shown"},
    "f1_score": {"ru": "То и другое вместе", "en": "Both in one"},
    "cache_hit_rate": {"ru": "Ответил бы кэш", "en": "A cache would answer"},
    "cache_wrong_hit_rate": {"ru": "Из них ошибочно", "en": "Of these wrongly"},
}
STAGES: dict[str, Text] = {
    "retrieval": {"ru": "нужное не найдено", "en": "the right passage was not found"},
    "generation": {"ru": "ответ неверен контексту или бесполезен", "en": "the answer is unfaithful or of no use"},
    "refusal": {
        "ru": "отказ там, где ответ есть, или наоборот",
        "en": "refused where it should answer, or the reverse",
    },
    "gate": {"ru": "ответ спрятан", "en": "the answer was hidden"},
    "label": {"ru": "сомнительна разметка", "en": "the label is in doubt"},
}
SENTENCES: dict[str, Text] = {
    "failed": {
        "ru": "Не измерено, прогон не удался: {tiers}.",
        "en": "Not measured, for the run failed: {tiers}.",
    },
    "weakest": {
        "ru": "Слабее всего {tier}: {label} {value}, а хорошо начинается с {bound}.",
        "en": "The weakest is {tier}: {label} {value}, where good begins at {bound}.",
    },
    "weakest good": {
        "ru": "Ни один уровень не требует внимания. Ниже других {tier}: {label} {value}.",
        "en": "No tier needs attention. The lowest is {tier}: {label} {value}.",
    },
    "all excellent": {
        "ru": "Все оценённые уровни отличны. Ниже других {tier}: {label} {value}.",
        "en": "Every graded tier is excellent. The lowest is {tier}: {label} {value}.",
    },
    "nothing graded": {
        "ru": "Ни один уровень не получил оценки: смотрите, что помешало.",
        "en": "No tier could be graded: see below what stood in the way.",
    },
    "nothing before": {
        "ru": "Сравнить не с чем: это первый прогон на таких вопросах.",
        "en": "There is nothing to compare with yet: these are the first evaluations of these questions.",
    },
    "no change": {
        "ru": "С {since} заметных изменений нет.",
        "en": "No difference shown since {since}.",
    },
    "nothing certain": {
        "ru": "С {since} перемен, отличимых от случайных, нет.",
        "en": "Since {since} nothing changed by more than chance.",
    },
    "changed": {"ru": "С {since}: {what}.", "en": "Since {since}: {what}."},
    "regressed": {"ru": "хуже стало — {what}", "en": "worse — {what}"},
    "improved": {"ru": "лучше стало — {what}", "en": "better — {what}"},
    "not run": {"ru": "Прогон не завершён, чисел нет.", "en": "The evaluation did not finish; there are no numbers."},
    "not measured": {
        "ru": "Главное, {label}, измерить не удалось.",
        "en": "The main metric, {label}, was not measured.",
    },
    "value only": {"ru": "{label}: {value}.", "en": "{label}: {value}."},
    "tier0": {
        "ru": "Страницы в пространстве векторов перемешаны: тексты лежат к чужой странице почти так же близко, как "
        "к своей.",
        "en": "Pages are mixed in vector space: texts lie almost as near to another page as to their own.",
    },
    "tier0 apart": {
        "ru": "Тексты одной страницы лежат вместе и отдельно от чужих.",
        "en": "Texts of one page lie together and apart from the others.",
    },
    "tier1": {
        "ru": "Нужное стоит первым у {hit_rate_at_1} вопросов и есть среди первых десяти у {hit_rate_at_10}.",
        "en": "The right one comes first for {hit_rate_at_1} of the questions, and is in the first ten for "
        "{hit_rate_at_10}.",
    },
    "tier2": {
        "ru": "Имея верный контекст, модель держится его на {avg_faithfulness}, а вопросу отвечает на "
        "{avg_answer_relevance}.",
        "en": "Given the right context, the model stays with it to {avg_faithfulness}, and answers the question to "
        "{avg_answer_relevance}.",
    },
    "tier3": {
        "ru": "Ответы системы полезны на {avg_e2e_score} от эталонных; отказов {refusal_rate}.",
        "en": "The answers are {avg_e2e_score} as useful as the references; refused: {refusal_rate}.",
    },
    "judge": {
        "ru": "Судья согласен с собой в {consistency_score} пар, случай дал бы {consistency_score_expected}.",
        "en": "The judge agrees with itself on {consistency_score} of the pairs; chance would give "
        "{consistency_score_expected}.",
    },
    "judge by chance": {
        "ru": "Судья не надёжнее случая: его оценкам на других уровнях верить нельзя.",
        "en": "The judge is no better than chance: do not rely on its scores in the other tiers.",
    },
    "judge_pipeline": {
        "ru": "Верны {accuracy} решений; напрасно показано {false_positives}, напрасно спрятано {false_negatives}.",
        "en": "{accuracy} of the decisions are right; wrongly shown {false_positives}, wrongly hidden "
        "{false_negatives}.",
    },
    "ux": {
        "ru": "Кэш ответил бы на {cache_hit_rate} вопросов и в {cache_wrong_hit_rate} этих случаев ошибся бы.",
        "en": "A cache would answer {cache_hit_rate} of the questions, and be wrong in {cache_wrong_hit_rate} of "
        "these.",
    },
    "resume": {
        "ru": "Завершите прогон: yarus run {tier} --resume {id}",
        "en": "Finish it: yarus run {tier} --resume {id}",
    },
    "restore coverage": {
        "ru": "Прогон недействителен: измерено слишком мало. Посмотрите причины у неизмеренных вопросов.",
        "en": "The evaluation is invalid: too little was measured. See the reasons of the unmeasured questions.",
    },
    "re-rank": {
        "ru": "Ещё у {gap} вопросов нужное найдено, но не первым: здесь поможет переранжирование.",
        "en": "For another {gap} of the questions it is found but not first: a re-ranker could win these.",
    },
    "missed": {
        "ru": "У {missed} вопросов нужного нет и среди десяти: начните с них.",
        "en": "For {missed} of the questions it is not among the ten at all: begin with these.",
    },
    "failures": {
        "ru": "Чаще всего {stage}: {n} из {of} неудач. Начните с них.",
        "en": "Most often {stage}: {n} of {of} failures. Begin with these.",
    },
    "next tier0": {
        "ru": "Если поиск хорош, менять нечего; если нет, сравните другой эмбеддер.",
        "en": "If retrieval is good, leave it; if not, compare another embedder.",
    },
    "next tier2": {
        "ru": "Прочтите ответы, которые судья счёл не подтверждёнными контекстом.",
        "en": "Read the answers that the judge found unsupported by the context.",
    },
    "next tier3": {"ru": "Прочтите наименее полезные ответы.", "en": "Read the least useful answers."},
    "next judge": {
        "ru": "Прочтите ответы, где судья расходится с собой; проверьте и сдвиги ниже.",
        "en": "Read the answers on which the judge disagrees with itself; look at the shifts below, too.",
    },
    "next gate": {"ru": "Прочтите неверные решения.", "en": "Read the wrong decisions."},
    "next ux": {
        "ru": "Прочтите ошибочные попадания, прежде чем включать кэш.",
        "en": "Read the wrong hits before a cache is switched on.",
    },
    "nothing to do": {"ru": "Делать ничего не нужно.", "en": "There is nothing to do."},
}
