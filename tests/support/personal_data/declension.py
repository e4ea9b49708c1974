"""Russian names in six cases, for generated texts. Imported by full name."""

CASES = (
    "nom", "gen", "dat", "acc", "ins", "pre",
)  # fmt: skip


class Forms:
    """The six cases of a word, as attributes."""

    def __init__(self, word: str, woman: bool, *, surname: bool = False) -> None:
        for case, form in zip(CASES, decline(word, woman, surname), strict=True):
            setattr(self, case, form)

    def __getattr__(self, name: str) -> str:
        raise AttributeError(name)


def decline(word: str, woman: bool, surname: bool) -> list[str]:
    """Return the six cases of a word, from nominative to prepositional."""
    if word in ("Лев", "Любовь", "Пётр"):
        genitive = {"Лев": "Льва", "Любовь": "Любови", "Пётр": "Петра"}[word]
        stem = genitive[:-1]
        ends = ("и", "и", "ь", "ью", "и") if woman else ("а", "у", "а", "ом", "е")
        return [word, *("Любовь" if woman and end == "ь" else "Любовью" if end == "ью" else stem + end for end in ends)]
    if (
        (surname and word.endswith(("ских", "ых", "их", "ко")))
        or (woman and word[-1] not in "аяь")
        or word.endswith(("ли", "уль"))
    ):
        return [word] * 6
    if surname and word.endswith(("ов", "ев", "ёв", "ин", "ын")):
        return [word, *(word + end for end in ("а", "у", "а", "ым", "е"))]
    if surname and word.endswith(("ова", "ева", "ёва", "ина", "ына")):
        return [word, *(word[:-1] + end for end in ("ой", "ой", "у", "ой", "ой"))]
    if surname and word.endswith(("ский", "цкий", "той")):
        return [word, *(word[:-2] + end for end in ("ого", "ому", "ого", "им", "ом"))]
    if surname and word.endswith(("ская", "цкая", "тая")):
        return [word, *(word[:-2] + end for end in ("ой", "ой", "ую", "ой", "ой"))]
    if surname and woman:
        return [word] * 6
    table = {
        "ия": "и и ю ей и",
        "я": "и е ю ей е",
        "а": "ы е у ой е",
        "ий": "я ю я ем и",
        "й": "я ю я ем е",
        "ь": "я ю я ем е",
    }
    end = next((end for end in table if word.endswith(end)), "")
    ends = table.get(end, "а у а ом е").split()
    stem = word[:-1] if end else word
    forms = [stem + end for end in ends]
    forms = [form[:-1] + "и" if form.endswith(("гы", "кы", "хы", "шы", "жы")) else form for form in forms]
    return [word, *(form[:-2] + "ем" if form.endswith("чом") else form for form in forms)]


def make_feminine(word: str, woman: bool) -> str:
    if not woman:
        return word
    if word.endswith(("ский", "цкий", "той")):
        return word[:-2] + "ая"
    return word + "а" if word.endswith(("ов", "ев", "ёв", "ин", "ын")) else word


def make_patronymic(name: str, woman: bool) -> str:
    irregular_stems = {"Илья": "Ильи", "Никита": "Никити", "Лев": "Льво", "Василий": "Василье", "Юрий": "Юрье"}
    stem = irregular_stems.get(name) or (name[:-1] + "е" if name[-1] in "йь" else name + "о")
    stem = "Игоре" if name == "Игорь" else stem
    stem = "Ильини" if woman and stem == "Ильи" else stem
    return stem + (("чна" if stem.endswith("и") else "вна") if woman else ("ч" if stem.endswith("и") else "вич"))
