"""What is said of a table that people have filled in, by language: its rows are theirs to mend."""

from typing import Any

from db.errors import InputError
from tasks.config.settings import settings

RU = {
    "annotator": "разметчик {given!r}: нужны буквы, цифры, пробелы и знаки . @ _ -, не больше 60",
    "columns": "{path}: нет столбцов {names}; ничего не загружено",
    "production": "в рабочую базу ничего не пишется; скопируйте её (yarus load postgres …), затем --into ИМЯ",
    "sources": "{path}: названы источники: {names}; скажите, в какой загрузить: --into ИСТОЧНИК",
    "nothing": "{path}: ничего не загружено; строки считаются, как в электронной таблице, вместе с заголовком:",
    "more": "и ещё {n}",
    "row": "строка {number}",
    "yes or no": "{given!r}: это не да и не нет; напишите да или нет",
    "date for ids": "вместо id получилась дата {given}: сделайте столбец текстовым",
    "date for id": "вместо id получилась дата {given}: сделайте столбец текстовым или выгрузите файл заново",
    "question": "в источнике нет вопроса {given!r}",
    "no id": "нет id вопроса",
    "twice": "вопрос {given!r} размечен дважды, ещё и в строке {other}",
    "label": "в корпусе нет ни фрагмента, ни страницы {given!r}",
    "other source": "--evaluation {name}: источник этого прогона — {theirs!r}, а не {ours!r}",
    "no file": "--evaluation {name}: у прогона нет файла, его состояние — {state}",
    "suffix": "{path}: имя файла должно кончаться на .csv или .xlsx",
    "unwritten": "{path}: не записать: {why}",
    "unread": "{path}: не прочитать: {why}",
    "empty": "{path}: пусто; нужна таблица, какую пишет export-annotation",
    "workbook": "{path}: это не книга Excel; сохраните таблицу как .xlsx или .csv",
    "large": "{path}: в распакованном виде {size} байт, а читается не больше {most}; оставьте в файле одну таблицу без "
    "рисунков или разделите её",
    "cells": "{path}, строка {number}: здесь больше {most} ячеек, считая пустые; удалите пустые строки и столбцы или "
    "разделите таблицу",
    "tags": "{path}: {tags} элементов разметки, а читается не больше {most}; сохраните таблицу как .csv",
    "quotes": "{path}, строка {number}: дальше не прочитать, кавычка пропущена или лишняя; ничего не загружено",
    "encoding": "{path}: не UTF-8, не UTF-16 и не Windows-1251; сохраните как CSV UTF-8 или как .xlsx",
    "FileNotFoundError": "такого файла или папки нет",
    "PermissionError": "нет доступа",
    "IsADirectoryError": "это папка",
}
EN = {
    "annotator": "annotator {given!r}: use up to 60 letters, digits, spaces and . @ _ -",
    "columns": "{path}: without the columns {names}; nothing was imported",
    "production": "a production database is never written to; copy it (yarus load postgres …), then --into NAME",
    "sources": "{path}: names the sources {names}; say which gets the labels: --into SOURCE",
    "nothing": "{path}: nothing was imported; rows are numbered as in a spreadsheet, header included:",
    "more": "and {n} more",
    "row": "row {number}",
    "yes or no": "{given!r} is neither yes nor no; write yes or no",
    "date for ids": "the ids became the date {given}: format the column as text",
    "date for id": "the id became the date {given}: format the column as text, or export the file again",
    "question": "the source has no question {given!r}",
    "no id": "no question id",
    "twice": "question {given!r} is labelled twice, in row {other} too",
    "label": "no chunk or page {given!r} in the corpus",
    "other source": "--evaluation {name}: its source is {theirs!r}, not {ours!r}",
    "no file": "--evaluation {name}: it is {state} and has no file",
    "suffix": "{path}: expected a file that ends in .csv or .xlsx",
    "unwritten": "{path}: cannot be written: {why}",
    "unread": "{path}: cannot be read: {why}",
    "empty": "{path}: empty; expected a table as export-annotation writes it",
    "workbook": "{path}: no workbook; save it as .xlsx or .csv",
    "large": "{path}: {size} bytes once unpacked, and no more than {most} are read; leave nothing but the table in the "
    "file, without pictures, or split it",
    "cells": "{path}, row {number}: more than {most} cells up to here, empty ones too; delete empty rows and columns, "
    "or split the table",
    "tags": "{path}: {tags} elements of markup, and no more than {most} are read; save the table as .csv",
    "quotes": "{path}, row {number}: cannot be read from here, a quotation mark is missing or too many; nothing was "
    "imported",
    "encoding": "{path}: neither UTF-8, UTF-16 nor Windows-1251; save it as CSV UTF-8, or as .xlsx",
    "FileNotFoundError": "there is no such file or folder",
    "PermissionError": "access is denied",
    "IsADirectoryError": "it is a folder",
}
WORDS = {"ru": RU, "en": EN}


def said(name: str, /, **values: Any) -> str:
    """What is wrong, in the language of the settings."""
    return WORDS[settings().language][name].format(**values)


def wrong(name: str, /, **values: Any) -> InputError:
    """The error that says so."""
    return InputError(said(name, **values))


def unusable(name: str, path: object, error: OSError) -> InputError:
    """The error for a file that the system does not let us read or write."""
    why = WORDS[settings().language].get(type(error).__name__, error.strerror or error)
    return wrong(name, path=path, why=why)
