"""Generate texts with personal data of known kind and position: names in all cases, numbers in many spellings.

The names, contexts and spellings are not taken from `yarus.tasks.cases.privacy.masking`. Imported by its full name.
"""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.personal_data.declension import CASES, Forms, make_feminine, make_patronymic
from tests.support.personal_data.paper_numbers import card, inn, snils

MEN = (
    "Иван", "Пётр", "Сергей", "Андрей", "Николай", "Дмитрий", "Олег", "Игорь", "Антон", "Глеб", "Евгений", "Илья",
    "Никита", "Лев", "Рустам", "Тимур", "Артур", "Эдуард", "Марат", "Богдан", "Савелий", "Захар", "Ильдар",
    "Альберт", "Прохор",
)  # fmt: skip
WOMEN = (
    "Анна", "Мария", "Ольга", "Екатерина", "Наталья", "Юлия", "Любовь", "Софья", "Дарья", "Ксения", "Виктория",
    "Аксинья", "Гульнара", "Айгуль", "Эльвира", "Жанна", "Инна", "Нина", "Диана", "Камилла", "Зоя", "Майя",
    "Снежана", "Василиса", "Нелли",
)  # fmt: skip
SURNAMES = (
    "Кузнецов", "Соколов", "Лебедев", "Новиков", "Голубев", "Гаврилин", "Птицын", "Соловьёв", "Киселёв", "Жуковский",
    "Высоцкий", "Синицкий", "Шевченко", "Макаренко", "Романюк", "Ковальчук", "Саркисян", "Хачатурян", "Мельник",
    "Гусь", "Ким", "Цой", "Шмидт", "Гинзбург", "Бондарь", "Толстой", "Черных", "Долгих", "Хасанов", "Валиев",
    "Мухаметзянов", "Римский-Корсаков",
)  # fmt: skip
FATHERS = (
    "Иван", "Сергей", "Андрей", "Николай", "Дмитрий", "Олег", "Игорь", "Илья", "Никита", "Лев", "Рустам", "Марат",
    "Захар", "Василий", "Юрий",
)  # fmt: skip

PHONES = (
    "+7 ({a}) {b}-{c}-{d}", "8 {a} {b} {c} {d}", "8{a}{b}{c}{d}", "+7{a}{b}{c}{d}", "8-{a}-{b}-{c}-{d}",
    "{a}.{b}.{c}.{d}", "8.{a}.{b}.{c}.{d}", "{a} {b} {c} {d}", "8/{a}/{b}/{c}/{d}", "8 ({a}) {b} {c}{d}",
    "+7\u00a0{a}\u00a0{b}\u2009{c}\u2009{d}", "8\u200b{a}\u200b{b}\u200b{c}{d}", "{spaced}", "{full}",
    "+7 {a}\n{b} {c} {d}", "wa.me/7{a}{b}{c}{d}", "tel:+7{a}{b}{c}{d}", "https://wa.me/7{a}{b}{c}{d}",
    "https://api.whatsapp.com/send?phone=7{a}{b}{c}{d}", "+7 {a} {b}{c}{d} доб. 12", "7{a}{b}{c}{d}",
    "8 {a} {b}–{c}–{d}", "+7-{a}-{b}{c}-{d}", "тел. для связи: {b}-{c}{d}", "+7 [{a}] {b} {c} {d}",
    "+375 29 {b} {c} {d}", "+1 (415) {b}-{c}{d}", "8_{a}_{b}_{c}_{d}", "{arabic}", "8 {a} {b} {c} {d}м",
)  # fmt: skip
MAILS = (
    "{n}.{s}@mail.ru", "{n}{y}@stud.univer.example", "{s}_{n}@ya.ru", "{n} @ mail.ru", "{n}(at)gmail.com",
    "{n}[at]mail.ru", "{n} at gmail dot com", "{n}(at)gmail(dot)com", "{n} собака mail.ru",
    "{n}собака mail точка ru", "{n} [собака] ya.ru", "{n}.{s}＠mail.ru", "иван{y}@почта.рф", "{n}@почта.рус",
    "mailto:{n}@ya.ru", "{n} sobaka mail ru", "{n}+{s}@ya.ru", "{n}@\u200bmail.ru", "{n}@mail,ru",
    "{n} (собака) mail (точка) ru",
)  # fmt: skip
IDS = (
    "студенческий билет № {i}", "номер зачетки {i}", "студак {i}", "зачётная книжка 20{y}-{j}", "мой id {i}",
    "st{i}", "логин s{i}", "паспорт 36{y} {i}", "паспорт 36 {y} {i}", "паспорт: 36 {y} № {i}",
    "паспорт серия 36{y} номер {i}", "серия 36 {y} номер {i}", "паспорт серии 36 {y} № {i}",
    "паспортные данные 36{y}{i}", "СНИЛС {snils}", "{snils}", "ИНН {inn}", "мой инн {inn}", "карта {card}", "{card}",
    "переведите на {card4}", "{card_dash}", "р/с 408178105{i}{j}", "счёт 40817 810 5 {i} {j}",
    "дата рождения {y}.05.2004", "родился {y} мая 2003 года", "д.р. 0{m}.0{m}.2001", "IBAN DE89370400440532013000",
    "IBAN GB29 NWBK 6016 1331 9268 19", "личный номер {i}", "загранпаспорт 71 {i}7", "студ. билет {i}",
)  # fmt: skip
HANDLES = (
    "t.me/{n}_{s}", "https://t.me/{n}{s}", "vk.com/id{i}", "https://vk.com/{n}.{s}", "tg: @{n}_{s}",
    "телега @{n}{y}{s}", "tg://resolve?domain={n}_{s}", "телеграм {n}_{s}", "скайп: {n}.{s}", "пишите @{n}_{s}",
    "instagram.com/{n}_{s}",
)  # fmt: skip
ADDRESSES = (
    "ул. Ленина, д. 5, кв. {y}", "улица Мичурина 12 кв {y}", "г. Самара, ул. Ново-Садовая, д. 106а, кв. {y}",
    "пр-т Кирова 25-{y}", "проспект Карла Маркса, дом 8, квартира {y}", "живу: Аврора, 17, кв. {y}",
    "пер. Тихий, д.4, к.2, кв.{y}",
)  # fmt: skip
NAME_CONTEXTS = (
    "{s.nom} {n.nom} {f.nom} не допущен к экзамену", "справка для {s.gen} {n.gen} {f.gen}",
    "передайте {s.dat} {n.dat}", "вопрос к {n.dat} {f.dat}", "говорил с {n.ins} {f.ins} вчера",
    "отчисляют {s.acc} {n.acc}", "{n.nom} {s.nom}, группа 215", "я {l}, как мне восстановиться",
    "меня зовут {n.nom} {s.nom}", "меня зовут {ln}", "мой руководитель {s.nom} {i}.{j}.",
    "у преподавателя {i}. {j}. {s.gen} пересдача", "доцент {s.nom} ставит зачёт?", "сдавать {s.dat} {i}. {j}.",
    "о {n.pre} {s.pre} в приказе", "спросите {n.acc} {s.acc}", "СТУДЕНТ {U} ОТЧИСЛЕН",
    "моя фамилия {s.nom}, не пускает", "с уважением, {n.nom} {s.nom}", "куратор {n.nom} {f.nom} не отвечает",
    "профессору {s.dat} написать куда", "у {s.gen} когда консультация", "{lat} cannot log in", "подпись {i}.{s.nom}",
    "ФИО: {s.nom} {n.nom} {f.nom}", "студентка {n.nom} {s.nom} болеет", "для {n.gen} {s.gen} нужна виза",
    "наш староста — {n.nom} {s.nom}", "напомните {n.dat} {f.dat}", "где сидит {s.nom}?",
)  # fmt: skip
PREFIXES = (
    "", "Здравствуйте! ", "подскажите пожалуйста, ", "В общежитии на Московском шоссе. ", "Добрый день, ",
    "не работает личный кабинет, ", "Когда сессия? ", "вот: ",
)  # fmt: skip
SUFFIXES = (
    "", ".", ", спасибо", "\nжду ответа", " и что дальше?", " — помогите", "!", " (это срочно)",
)  # fmt: skip
LATIN = {
    "ж": "zh",
    "х": "kh",
    "ц": "ts",
    "ч": "ch",
    "ш": "sh",
    "щ": "shch",
    "ю": "yu",
    "я": "ya",
    "ё": "e",
    "ъ": "",
    "ь": "",
}
LATIN |= dict(zip("абвгдезийклмнопрстуфыэ", "abvgdeziyklmnoprstufye", strict=True))


class PlantedText(NamedTuple):
    """A text and the personal data in it."""

    kind: str
    form: str
    text: str
    secret: str
    start: int
    end: int


def make_planted_texts(n: int, seed: int) -> list[PlantedText]:
    """Return n texts of every kind, with the forms in turn."""
    chance = random.Random(seed)
    makers = {"phone": phones, "email": mails, "id": papers, "handle": handles, "address": addresses, "name": names}
    return [next(texts_of_kind) for make in makers.values() for texts_of_kind in [make(chance)] for _ in range(n)]


def _embed(chance: random.Random, kind: str, form: str, form_text: str, secret: str) -> PlantedText:
    before, after = chance.choice(PREFIXES), chance.choice(SUFFIXES)
    start = len(before) + form_text.index(secret)
    return PlantedText(kind, form, before + form_text + after, secret, start, start + len(secret))


def _digits(chance: random.Random, n: int) -> str:
    return str(chance.randrange(10 ** (n - 1), 10**n))


def phones(chance: random.Random) -> Iterator[PlantedText]:
    """Yield phone numbers in the spellings of `PHONES`."""
    while True:
        for form in PHONES:
            a = chance.choice(("927", "999", "846", "916", "495"))
            a = a if form[0] in "+8h[" or "wa.me" in form or form[0] == "7" else "9" + _digits(chance, 2)
            parts = {"a": a, "b": _digits(chance, 3), "c": _digits(chance, 2), "d": _digits(chance, 2)}
            number = "8" + "".join(parts.values())
            full = number.translate({48 + offset: 0xFF10 + offset for offset in range(10)})
            arabic = number.translate({48 + offset: 0x0660 + offset for offset in range(10)})
            form_text = form.format(**parts, spaced=" ".join(number), full=full, arabic=arabic)
            secret = (
                form_text.removeprefix("тел. для связи: ")
                .removesuffix(" доб. 12")
                .removesuffix("м")
                .removeprefix("tel:")
            )
            secret = re.split("[/=]", secret)[-1] if "wa.me" in form or "=" in form else secret
            yield _embed(chance, "phone", form, form_text, secret)


def _draw_parts(chance: random.Random) -> dict[str, str]:
    n, s = chance.choice(("ivan", "olga", "masha", "petr")), chance.choice(("kuznets", "lebedeva", "volk"))
    return {"n": n, "s": s, "y": str(chance.randrange(10, 29))}


def mails(chance: random.Random) -> Iterator[PlantedText]:
    """Yield email addresses in the spellings of `MAILS`."""
    while True:
        for form in MAILS:
            address = form.format(**_draw_parts(chance))
            yield _embed(chance, "email", form, address, address.removeprefix("mailto:"))


def papers(chance: random.Random) -> Iterator[PlantedText]:
    """Yield numbers of documents, cards and accounts, and dates of birth; the secret is the number."""
    while True:
        for form in IDS:
            number = card(chance)
            parts = {
                "i": _digits(chance, 6),
                "j": _digits(chance, 5),
                "y": str(chance.randrange(10, 29)),
                "m": _digits(chance, 1),
            }
            parts |= {
                "snils": snils(chance),
                "inn": inn(chance, 12),
                "card": number,
                "card_dash": "-".join(_split_fours(number)),
            }
            form_text = form.format(**parts, card4=" ".join(_split_fours(number)))
            words = form_text.split()
            first = next(index for index, word in enumerate(words) if any(character.isdigit() for character in word))
            yield _embed(chance, "id", form, form_text, " ".join(words[first:]).removesuffix(" года"))


def _split_fours(number: str) -> list[str]:
    return [number[i : i + 4] for i in range(0, len(number), 4)]


def handles(chance: random.Random) -> Iterator[PlantedText]:
    """Yield pages and names in messengers."""
    while True:
        for form in HANDLES:
            form_text = form.format(**_draw_parts(chance), i=_digits(chance, 8))
            yield _embed(chance, "handle", form, form_text, re.split(r"[\s/=@]", form_text)[-1])


def addresses(chance: random.Random) -> Iterator[PlantedText]:
    """Yield home addresses, including the flat."""
    while True:
        for form in ADDRESSES:
            address = form.format(y=chance.randrange(10, 200))
            yield _embed(chance, "address", form, address, address.removeprefix("живу: "))


def names(chance: random.Random) -> Iterator[PlantedText]:
    """Yield names in the contexts of `NAME_CONTEXTS`, in the grammatical case of the context."""
    while True:
        for form in NAME_CONTEXTS:
            woman = chance.random() < 0.5 or "студентка" in form
            n, s, f = chance.choice(WOMEN if woman else MEN), chance.choice(SURNAMES), chance.choice(FATHERS)
            s, f = make_feminine(s, woman), make_patronymic(f, woman)
            forms = {"n": Forms(n, woman), "s": Forms(s, woman, surname=True), "f": Forms(f, woman)}
            more = {
                "l": f"{s} {n}".lower(),
                "ln": f"{n} {s}".lower(),
                "U": f"{s} {n} {f}".upper(),
                "i": n[0],
                "j": f[0],
            }
            more["lat"] = " ".join(_transliterate(word) for word in (n, s))
            sentence = form.format(**forms, **more)
            secrets = [str(getattr(word, case)) for word in forms.values() for case in CASES] + list(more.values())[:3]
            spans = [
                (sentence.find(word), sentence.find(word) + len(word))
                for word in (*secrets, more["lat"])
                if len(word) > 1 and word in sentence
            ]
            start, end = min(a for a, _ in spans), max(b for _, b in spans)
            start = min(start, sentence.find(f"{n[0]}.") if f"{n[0]}." in sentence else start)
            yield _embed(chance, "name", form, sentence, sentence[start:end])


def _transliterate(word: str) -> str:
    return "".join(LATIN.get(letter, letter) for letter in word.lower()).title()
