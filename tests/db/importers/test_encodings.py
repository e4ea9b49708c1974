"""Test that the encoding of a text is guessed from its bytes, and that a guess from few letters is uncertain."""

import codecs
import time

import pytest

from yarus.db.importers.encodings import CYRILLIC_ENCODINGS, EncodingGuess, decode_text, guess_encoding

SENTENCES = """\
Как продлить читательский билет?
Где забрать готовую справку?
Сколько книг выдают на руки?
Можно ли привезти микроволновку?
До скольких открыт спортзал?
Как отменить бронь комнаты?
Кто выдаёт ключи от аудитории?
Почему не приходит стипендия?
Какие документы нужны для общежития?
Когда начинается зимняя сессия?
Что делать, если потерял пропуск?
Нужна ли печать на заявлении?
Куда сдать обходной лист?
Есть ли скидка для студентов?
Подойдёт ли копия паспорта?
Справку готовят три рабочих дня.
Заявление подаётся в деканат.
Библиотека работает с девяти утра.
Столовая находится во втором корпусе.
Расписание висит у главного входа.
Пропуск оформляют в бюро пропусков.
Заселение начинается в конце августа.
Комендант выдаёт постельное бельё.
Экзамен можно пересдать дважды.
Зачётная книжка хранится у куратора.
Стипендию перечисляют на карту.
Академический отпуск длится год.
Оплатить обучение можно частями.
Преподаватель отвечает на письма в пятницу.
Вход в лабораторию только в халате.
Медосмотр проходят до первого сентября.
Тренер ведёт занятия по вторникам.
Парковка для сотрудников бесплатна.
Лифт ремонтируют до понедельника.
Сантехника вызывают через журнал заявок.
Лекция переносится в большой зал.
Курсовую работу сдают в электронном виде.
Научный руководитель подписывает план.
Перевод на бюджет обсуждает комиссия.
Выпускники получают дипломы летом.
Дежурный открывает аудитории утром.
Гостей пускают до десяти вечера.
Шум после одиннадцати запрещён.
Окна в комнатах мыть обязательно.
Интернет подключают за один день.
Логин совпадает с номером билета.
Пароль меняют раз в полгода.
Учебник можно взять на семестр.
Читальный зал закрыт по воскресеньям.
За утерю книги платят штраф.
Копировальный аппарат стоит в холле.
Практика проходит на заводе.
Договор подписывает проректор.
Отчёт о практике нужен к маю.
Староста отмечает отсутствующих.
Пропуски отрабатывают летом.
Чертежи принимают только на бумаге.
Эту дисциплину читают весной.
Физкультура обязательна до третьего курса.
Военный билет сдают в отдел кадров.
Ёлку в холле ставят в декабре.
Ведомость закрывают в последний день.
Объявление вывешивают за неделю.
Юридическая помощь доступна всем.
""".splitlines()


def make_table(first: int, n_rows: int) -> str:
    rows = [SENTENCES[(first + number) % len(SENTENCES)] for number in range(n_rows)]
    return "id;question;category\n" + "".join(f"{number};{row};campus\n" for number, row in enumerate(rows))


@pytest.mark.parametrize("n_rows", [1, 2, 5])
@pytest.mark.parametrize("encoding", CYRILLIC_ENCODINGS)
def test_guess_is_right_for_short_russian_tables(encoding: str, n_rows: int) -> None:
    assert len(SENTENCES) >= 60
    guesses = {
        make_table(first, n_rows): guess_encoding(make_table(first, n_rows).encode(encoding)) for first in range(60)
    }
    assert {text: guess for text, guess in guesses.items() if guess.encoding != encoding} == {}


@pytest.mark.parametrize("encoding", CYRILLIC_ENCODINGS)
def test_guess_is_right_for_capitals(encoding: str) -> None:
    wrong = [text for text in SENTENCES if guess_encoding(text.upper().encode(encoding)).encoding != encoding]
    assert len(wrong) <= 1, wrong  # a single line of capitals
    for first in range(60):
        assert guess_encoding(make_table(first, 3).upper().encode(encoding)).encoding == encoding


@pytest.mark.parametrize("encoding", CYRILLIC_ENCODINGS)
@pytest.mark.parametrize("text", ["Да", "Нет", "Жук", "1;Wi-Fi в PDF-файле", "Ответ «Да» — в п. 5"])
def test_guess_is_right_for_a_few_letters(text: str, encoding: str) -> None:
    content = text.encode(encoding, "ignore")
    guess = guess_encoding(content)
    assert (guess.encoding, guess.is_uncertain) == (encoding, True)


def test_guess_is_uncertain_under_fifty_letters() -> None:
    uncertain_guess = guess_encoding("a;b\n1;Двадцать букв в тексте я".encode("cp1251"))
    assert uncertain_guess == EncodingGuess("cp1251", 20)
    assert uncertain_guess.is_uncertain
    certain_guess = guess_encoding(make_table(0, 2).encode("cp1251"))
    assert certain_guess.letters is not None
    assert certain_guess.letters >= 50
    assert not certain_guess.is_uncertain


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Grüße aus München. Straße, Öl.", "cp1252"),
        ("Il va à Paris à pied, déjà l'été", "cp1252"),
        ("¿Dónde está el baño?", "cp1252"),
        ("“Quoted” – it’s fine", "cp1252"),
        ("å ä ö", "cp1252"),
    ],
)
def test_west_european_texts_are_not_cyrillic(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) == (text, encoding)
    assert not guess_encoding(text.encode(encoding)).is_uncertain


@pytest.mark.parametrize("text", ["", "id,question\n1,How do I reset it?", "Как продлить билет?", "日本語 😀 é"])
def test_utf8_leaves_no_doubt(text: str) -> None:
    assert guess_encoding(text.encode()) == EncodingGuess("utf-8")
    assert decode_text(text.encode()) == (text, "utf-8")
    assert decode_text(codecs.BOM_UTF8 + text.encode()) == (text, "utf-8-sig")


@pytest.mark.parametrize("text", ["hello\n", "Как продлить билет?", "Привет", "вопрос;ответ\r\nДа;No"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_detected_with_or_without_mark(text: str, encoding: str) -> None:
    assert guess_encoding(text.encode(encoding)) == EncodingGuess(encoding)
    assert decode_text(text.encode(encoding))[0] == text


@pytest.mark.parametrize("letter", "яé語😀")
def test_sample_that_ends_within_a_letter_is_utf8(letter: str) -> None:
    content = f"Вопрос: {letter}".encode()
    assert {guess_encoding(content[:end]).encoding for end in range(10, len(content))} == {"utf-8"}


def test_short_text_with_half_a_letter_is_not_utf8() -> None:
    assert guess_encoding("№;Да?\nx;р".encode("cp1251")).encoding == "cp1251"
    assert guess_encoding("вр".encode("cp866")).encoding == "cp866"
    assert guess_encoding(b"a" * 100_000 + "я".encode()[:1]).encoding == "utf-8"


def test_text_with_one_wrong_byte_is_utf8() -> None:
    text = " ".join(SENTENCES)
    assert guess_encoding(text.encode() + b"\xff end").encoding == "utf-8"
    assert decode_text(text.encode() + b"\xff")[0] == text + "\N{REPLACEMENT CHARACTER}"


def test_guess_is_uncertain_for_other_languages() -> None:
    assert guess_encoding("中文内容测试一下这个文件里面有很多汉字没有别的".encode("gbk")).is_uncertain


def test_decode_prefers_valid_declared_encoding() -> None:
    polish = "Zażółć gęślą jaźń".encode("cp1250")
    assert decode_text(polish, "windows-1250") == ("Zażółć gęślą jaźń", "windows-1250")
    russian = "Справка готова".encode("cp1251")
    for wrong in ("utf-8", "rot13", "unicode_escape", "no-such", "utf-7"):
        assert decode_text(russian, wrong) == ("Справка готова", "cp1251")
    assert decode_text("Справка".encode(), "windows-1251") == ("Справка", "utf-8")


def test_guess_is_fast_for_large_text() -> None:
    content = " ".join(SENTENCES * 2_000).encode("koi8-r")
    started = time.monotonic()
    assert guess_encoding(content).encoding == "koi8-r"
    assert time.monotonic() - started < 5
