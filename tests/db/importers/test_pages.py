"""Test the pages of a knowledge base: the text of each kind of file, and the reports on files that are not pages."""

import json
import logging
import os
import sys
import time
import tracemalloc
import zipfile
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.db.importers import archives, pages
from yarus.db.importers.pages import Page, is_page, iter_pages
from yarus.tasks.config.texts.messages import told

CASES = Path(__file__).parents[4] / "shared/cases"
WORD_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def write_files(folder: Path, **files: str | bytes) -> Path:
    """Write files; `__` in a name is a dot."""
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read_pages(path: Path) -> tuple[list[Page], list[str]]:
    """Return all pages of a path, and the problems."""
    problems: list[str] = []
    return list(iter_pages(path, problems)), problems


def read_page(folder: Path, name: str, content: str | bytes) -> Page:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    pages_read, problems = read_pages(folder / name)
    assert problems == []
    return pages_read[0]


def read_text(folder: Path, content: str | bytes, name: str = "page.html") -> str:
    return read_page(folder, name, content).text


def problems_of(folder: Path) -> list[str]:
    """Return the problems of a folder that also has a page."""
    (folder / "good.md").write_text("Текст")
    pages_read, problems = read_pages(folder)
    assert [page.name for page in pages_read] == ["good.md"]
    return problems


def make_docx(body: str, before: str = "", **members: str) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/document.xml",
            f'<?xml version="1.0"?>{before}<w:document xmlns:w="{WORD_NAMESPACE}"><w:body>{body}</w:body></w:document>',
        )
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def docx_paragraph(*texts: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}" + "".join(f"<w:r><w:t>{text}</w:t></w:r>" for text in texts) + "</w:p>"


def make_pdf(*texts: str, encrypt: str | None = None) -> bytes:
    pypdf = pytest.importorskip("pypdf")
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    for text in texts:
        page = writer.add_blank_page(400, 200)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 150 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if encrypt:
        writer.encrypt(encrypt, algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


# The case in the shared folder


def test_pages_of_shared_case_are_read() -> None:
    folder = CASES / "27_golden_and_pages/pages"
    if not folder.exists():
        pytest.skip(f"{folder} is not there")
    pages_read, problems = read_pages(folder)
    expected = json.loads((CASES / "expected.json").read_text())["27_golden_and_pages"]
    texts = {page.name: page.text for page in pages_read}
    assert len(texts) == expected["chunks"]
    assert set(expected["pages"]) < set(texts)
    assert texts["loan.txt"] == "На руки выдают не больше десяти книг на месяц."
    assert texts["move-in.html"].splitlines()[::2] == [
        "Заселение", "Заселение в общежитие начинается двадцать пятого августа.", "Ключи выдаёт комендант."
    ]  # fmt: skip
    assert texts["pass.docx"] == "Пропуск\nБюро пропусков находится на первом этаже."
    assert texts["wifi.pdf"] == "The wireless network is called campus-guest."
    assert texts["card.md"].startswith("# Читательский билет\n\nОкно номер три")
    rules = next(page for page in pages_read if page.name == "rules.md")
    assert rules.address() == "https://wiki.example/dorm/rules"
    assert {"rules.md", rules.address()} <= set(rules.names())
    assert rules.text == "В комнатах запрещены микроволновые печи; на кухне они есть."
    assert [*map(str, problems)] == ["empty.md: no text", "scan.pdf: no text (a scan?)", "photo.png: not a text file"]


# Folders


def test_pages_are_sorted_by_relative_path(tmp_path: Path) -> None:
    (tmp_path / "b/deep").mkdir(parents=True)
    write_files(tmp_path / "b/deep", z__MD="Z")
    write_files(tmp_path, c__txt="C", a__rst="A")
    write_files(tmp_path / "b", y__htm="<p>Y")
    pages_read, problems = read_pages(tmp_path)
    texts = [(page.name, page.text) for page in pages_read]
    assert texts == [("a.rst", "A"), ("b/deep/z.MD", "Z"), ("b/y.htm", "Y"), ("c.txt", "C")]
    assert pages_read[1].names() == ("b/deep/z.MD", "z.MD", "z")
    assert problems == []


def test_system_files_are_skipped(tmp_path: Path) -> None:
    for name in ("__MACOSX", ".git", ".obsidian"):
        (tmp_path / name).mkdir()
        write_files(tmp_path / name, hidden__md="Нет")
    write_files(tmp_path, Thumbs__db=b"\0\1", __DS_Store=b"\0\0")
    (tmp_path / "~$good.docx").write_bytes(b"\5")
    assert problems_of(tmp_path) == []


def test_single_page_has_the_name_of_its_file(tmp_path: Path) -> None:
    page = read_page(tmp_path, "rules.md", "# Правила\nТекст")
    assert page == Page("rules.md", None, "Правила", "# Правила\nТекст")
    assert page.address() == "rules.md"


def test_confluence_page_ids_are_names(tmp_path: Path) -> None:
    page = read_page(tmp_path, "Move-in_98765.html", "<p>Текст")
    assert page.names() == ("Move-in_98765.html", "Move-in_98765", "98765")
    assert read_page(tmp_path, "step_2.html", "<p>Текст").names() == ("step_2.html", "step_2")


def test_links_out_of_the_folder_are_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    write_files(tmp_path, secret__md="Секрет")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder)
    (folder / "self.md").symlink_to(folder / "self.md")
    assert sorted(problems_of(folder)) == [
        "link.md: a link that leads out of the folder; left out",
        "self.md: Too many levels of symbolic links",
        "up: a link that leads out of the folder; left out",
    ]


def test_link_within_the_folder_is_a_page(tmp_path: Path) -> None:
    write_files(tmp_path, a__md="A")
    (tmp_path / "b.md").symlink_to("a.md")
    assert [page.name for page in read_pages(tmp_path)[0]] == ["a.md", "b.md"]


def test_pipes_are_not_opened_as_pages(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert problems_of(tmp_path) == ["pipe.md: not a text file"]


def test_page_names_are_composed_unicode(tmp_path: Path) -> None:
    write_files(tmp_path, йод__md="Йод")
    (tmp_path / os.fsdecode(b"\xcf.md")).write_text("Текст")
    assert [page.name for page in read_pages(tmp_path)[0]] == ["йод.md", "\N{REPLACEMENT CHARACTER}.md"]


def test_files_that_are_not_pages_are_reported(tmp_path: Path) -> None:
    write_files(tmp_path, photo__png=b"\x89PNG\r\n\x1a\n", data__csv="a,b\n1,2\n")
    readable = ".md .markdown .txt .rst .html .htm .docx .pdf"
    assert problems_of(tmp_path) == [f"data.csv: not a page; pages are {readable} files", "photo.png: not a text file"]
    write_files(tmp_path, **{f"i{number}__png": b"\0" for number in range(5)})
    assert problems_of(tmp_path) == [f"7 files are not pages ({readable}): data.csv, i0.png, i1.png, i2.png, i3.png, …"]


def test_binary_file_with_page_suffix_is_not_a_page(tmp_path: Path) -> None:
    write_files(tmp_path, a__md=b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b__html=bytes(range(256)))
    assert problems_of(tmp_path) == ["a.md: not a text file", "b.html: not a text file"]


def test_files_without_text_are_reported(tmp_path: Path) -> None:
    write_files(tmp_path, a__md="", b__txt=" \n\t", c__html="<script>1</script>", d__docx=make_docx(""))
    write_files(tmp_path, e__md="---\nurl: x/y\n---\n", f__pdf="", g__docx="")
    names = ("a.md", "b.txt", "c.html", "d.docx", "e.md", "f.pdf", "g.docx")
    assert problems_of(tmp_path) == [f"{name}: no text" for name in names]


def test_large_file_is_skipped_unread(tmp_path: Path) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(40 << 20)
    message = "big.txt: 40 MiB, more than the 32 MiB that are read; left out. Split it, or convert it to text"
    assert problems_of(tmp_path) == [message]


def test_pages_with_same_address_stay_separate(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text('<link rel=canonical href="https://x.example/"><p>Текст')
    pages_read, problems = read_pages(tmp_path)
    assert [page.address() for page in pages_read] == ["https://x.example/", "b.html"]
    assert problems == ["b.html: its address https://x.example/ is that of a.html, too; its file name is used instead"]


def test_folder_without_pages_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no files; pages are \.md"):
        read_pages(tmp_path)
    write_files(tmp_path, photo__png=b"\x89PNG\r\n\x1a\n", a__md="")
    with pytest.raises(InputError) as error:
        read_pages(tmp_path)
    assert "no page with text among a.md, photo.png; pages are .md" in str(error.value)
    assert "a.md: no text; photo.png: not a text file" in str(error.value)
    assert "нет страниц с текстом" in told(error.value, "ru")
    assert "a.md: нет текста; photo.png: не текстовый файл" in told(error.value, "ru")


def test_missing_path_is_rejected_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory"):
        iter_pages(tmp_path / "no", [])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("entities.xml", "exportDescriptor.properties"), "XML export of Confluence.*Export the space as HTML"),
        (("users.json", "channels.json", "readme.md"), "export of Slack.*CSV with the columns question and answer"),
    ],
)
def test_known_exports_are_rejected_with_a_fix(tmp_path: Path, files: tuple[str, ...], message: str) -> None:
    for name in files:
        (tmp_path / name).write_text("Текст")
    with pytest.raises(InputError, match=message):
        iter_pages(tmp_path, [])


def test_single_file_of_an_export_is_rejected(tmp_path: Path) -> None:
    write_files(tmp_path, entities__xml="<a/>", other__md="Текст")
    with pytest.raises(InputError, match="XML export of Confluence"):
        iter_pages(tmp_path / "entities.xml", [])
    assert len(read_pages(tmp_path / "other.md")[0]) == 1


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", b"", True),
        ("a.HTM", b"", True),
        ("a.docx", b"PK", True),
        ("a.bin", b"%PDF-1.7", True),
        ("page", b"\n<!DOCTYPE html><p>", True),
        ("a.csv", b"a,b", False),
        ("a.xml", b"<html/>", False),
        ("a.json", b"[]", False),
        ("LICENSE", b"MIT", False),
    ],
)
def test_is_page_depends_on_content_and_suffix(tmp_path: Path, name: str, content: bytes, expected: bool) -> None:
    (tmp_path / name).write_bytes(content)
    assert is_page(tmp_path / name) is expected
    assert not is_page(tmp_path)
    assert not is_page(tmp_path / "none.md")


def test_iter_pages_holds_one_page_in_memory(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_bytes(b"text " * 200_000)
    tracemalloc.start()
    try:
        assert sum(len(page.text) for page in iter_pages(tmp_path, [])) > 19e6
        assert tracemalloc.get_traced_memory()[1] < 12e6
    finally:
        tracemalloc.stop()


# Markdown and plain text


@pytest.mark.parametrize(
    ("matter", "url", "title"),
    [
        ("url: https://x.example/a\ntitle: Имя", "https://x.example/a", "Имя"),
        ("Source: https://x.example/b", "https://x.example/b", "Заголовок"),
        ("permalink: /docs/a/\nsource: confluence", "/docs/a/", "Заголовок"),
        ("permalink: /docs/a/\nlink: https://x.example/c", "https://x.example/c", "Заголовок"),
        ("url: 5\ntitle: 2024", None, "2024"),
        ("url: [a/b]\ntitle: yes", None, "Заголовок"),
        ("", None, "Заголовок"),
    ],
)
def test_front_matter_gives_address_and_title(tmp_path: Path, matter: str, url: str | None, title: str) -> None:
    page = read_page(tmp_path, "a.md", f"---\r\n{matter}\n---\n# Заголовок #\n\nТекст")
    assert page == Page("a.md", url, title, "# Заголовок #\n\nТекст")


def test_broken_front_matter_stays_in_the_text(tmp_path: Path) -> None:
    matters = {"a": "a: [", "b": "d: 2024-13-45", "c": "[" * 5_000}
    texts = {name: f"---\n{matter}\n---\nТекст" for name, matter in matters.items()}
    write_files(tmp_path, **{f"{name}__md": text for name, text in texts.items()})
    pages_read, problems = read_pages(tmp_path)
    assert [page.text for page in pages_read] == [*texts.values()]
    assert problems[0].startswith("a.md: front matter is not YAML (line 3: ")
    assert problems[1:] == [f"{name}.md: front matter is not YAML; kept as text" for name in "bc"]


def test_front_matter_does_not_run_code_or_expand(tmp_path: Path) -> None:
    anchors = "a0: &a0 [x, x]\n" + "".join(
        f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 12)
    )
    write_files(tmp_path, a__md=f"---\n{anchors}title: Имя\n---\nТекст")
    write_files(tmp_path, b__md="---\nx: !!python/object/apply:os.system ['exit']\n---\nТекст")
    pages_read, problems = read_pages(tmp_path)
    assert (pages_read[0].title, pages_read[0].text) == ("Имя", "Текст")
    assert problems[0].startswith("b.md: front matter is not YAML")


def test_horizontal_rules_are_not_front_matter(tmp_path: Path) -> None:
    text = "---\nПросто текст\n---\nЕщё"
    assert read_text(tmp_path, text, "a.md") == text
    assert read_text(tmp_path, "Текст\n\n---\nурл: x\n---", "a.md").startswith("Текст")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("## Как *быть*", "Как *быть*"),
        ("# C#", "C#"),
        ("```\n# комментарий\n```\nТекст", None),
        ("Заголовок\n=========\nТекст", "Заголовок"),
        ("=====\nДлинный\n=====\n", "Длинный"),
        ("Раздел\n~~~~~~\n", "Раздел"),
        ("#тег\nТекст", None),
        ("a" * 300 + "\n---\n", None),
        ("# " + " " * 50_000 + "x", "x"),
    ],
)
def test_first_heading_is_the_title(tmp_path: Path, text: str, title: str | None) -> None:
    assert read_page(tmp_path, "a.rst", text).title == title


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "cp866", "utf-16", "utf-16-le", "utf-8-sig"])
def test_pages_in_old_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    text = "Справку готовят три дня.\r\nЗаявление подают в деканат.\r\n"
    assert read_text(tmp_path, text.encode(encoding), "a.txt") == text.replace("\r\n", "\n").strip()


def test_characters_that_postgresql_cannot_store_are_removed(tmp_path: Path) -> None:
    assert read_text(tmp_path, "a" * 200 + "\0b", "a.txt") == "a" * 200 + "b"
    page = read_page(tmp_path, "a.html", "<title>&#0;&#xD800;A</title><p>x&#xDFFF;&#0;y")
    page.text.encode()
    assert page.text == "x\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}y"


# HTML


def test_html_omits_navigation_and_other_surroundings(tmp_path: Path) -> None:
    names = ["nav", "header", "footer", "script", "style", "noscript", "aside", "form", "template"]
    surrounding = "".join(f"<{name}>лишнее</{name}>" for name in names)
    body = f"<body>{surrounding}<div>Суть</div>{surrounding}</body>"
    page = read_page(tmp_path, "a.html", f"<html><head><title>Имя</title></head>{body}</html>")
    assert (page.title, page.text) == ("Имя", "Суть")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<main>M</main><div id='main-content'>C</div><p>B", "C"),
        ("<article>A</article><main>M</main><p>B", "M"),
        ("<article>A</article><article>Б</article><p>B", "A\n\nБ"),
        ("<p>B</p><main></main>", "B"),
        ("<form><main>M<form>поиск</form></main></form>", "M"),
        ("<form><p>Вся страница в форме</p></form><p>B", "Вся страница в форме\n\nB"),
        ("<article><header><h1>Имя</h1></header><p>A</p><footer>F</footer></article>", "Имя\n\nA"),
        ("<nav>только меню</nav>", "только меню"),
    ],
)
def test_html_prefers_the_main_part(tmp_path: Path, body: str, text: str) -> None:
    assert read_text(tmp_path, f"<body>{body}</body>") == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>a<p>b", "a\n\nb"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<ul><li>a<li>b</ul>c", "a\nb\n\nc"),
        ("<table><tr><td>a<td>b<tr><td>c</td><td>d</td></tr></table>", "a\tb\nc\td"),
        ("<p>a <b>b</b>\n c&nbsp;d</p>", "a b c d"),
        ("сло<b>во</b>", "слово"),
        ("<pre>a\n  b</pre>c", "a\n  b\n\nc"),
        ("&lt;p&gt; &amp; &eacute; &#1103; &#x44F; &нет; &#; &", "<p> & é я я &нет; &#; &"),
        ("&#" + "9" * 5_000 + ";", "\N{REPLACEMENT CHARACTER}"),
        ("a < b > c <3", "a < b > c <3"),
        ("a <b", "a <b"),
        ("<p>a<!-- x --!><p>b--> c", "a\n\nb--> c"),
        ("a<!-- не закрыт <p>b", "a не закрыт\n\nb"),
        ("a<script>x<p>b", "ax\n\nb"),
        ("<script src='a.js'/><p>b", "b"),
        ("<nav>меню<p>текст", "меню\n\nтекст"),
        ("<div><nav>меню</div><p>текст", "меню\n\nтекст"),
        ("<img alt='a>b' src=x>c<input value=\"<p>\">", "c"),
        ('<p>a <b title="не закрыт>b</b><i class="x">c', "a c"),
        ("<p>a<nav>b<p>c", "a\nb\n\nc"),
        ("<noscript><div></noscript><p>a", "a"),
        ("<form><table><tr><td>поиск</form>a</table>b", "a\n\nb"),
        ("a<nav/>b<nav>меню</nav>", "a\nb"),
        ("<!-- <nav> -->a<script>'<nav>'</script>", "a"),
        ("<iframe><p>нет рамок</iframe>a", "a"),
        ("<h1 id=main-content>a</h1>b", "a\n\nb"),
        ("<title>Не закрыт<p>a", "Не закрыт\n\na"),
        ("<textarea><nav>a</nav></textarea>", "<nav>a</nav>"),
        ("\1" * 2 + "a" * 200, "\1" * 2 + "a" * 200),
        ("<i>" * 1_990 + "дно", "дно"),
        ("a" + "й" * 200_001, "a" + "й" * 200_001),
        ("<script>if (a < b) '</p>'</script >b", "b"),
        ("<div></div></div></p></main>a", "a"),
        ("<svg><title>значок</title></svg>a", "a"),
    ],
)
def test_html_keeps_text_and_breaks_lines(tmp_path: Path, body: str, text: str) -> None:
    assert read_text(tmp_path, f"<body>{body}") == text


@pytest.mark.parametrize(
    ("head", "url", "title"),
    [
        ('<link rel="canonical" href="https://x.example/a?b=1&amp;c=2">', "https://x.example/a?b=1&c=2", "H"),
        ('<meta property="og:url" content="https://x.example/a">', "https://x.example/a", "H"),
        ('<meta property="og:url" content="https://x.example/b"><link href=/a rel=canonical>', "/a", "H"),
        ("<title> Два\nслова </title>", None, "Два слова"),
        ("<link rel=canonical href=''><title></title>", None, "H"),
    ],
)
def test_html_address_and_title_are_read(tmp_path: Path, head: str, url: str | None, title: str) -> None:
    page = read_page(tmp_path, "a.html", f"<head>{head}</head><body><h1>H</h1><p>T")
    assert (page.url, page.title, page.text) == (url, title, "H\n\nT")


GUESSED_ENCODINGS = ("windows-1251", "koi8-r", "utf-8")
ENCODING_CASES = [(encoding, True) for encoding in (*GUESSED_ENCODINGS, "iso-8859-5")] + [
    (encoding, False) for encoding in GUESSED_ENCODINGS
]


@pytest.mark.parametrize(("encoding", "is_declared"), ENCODING_CASES)
def test_html_is_decoded_as_declared_or_guessed(tmp_path: Path, encoding: str, is_declared: bool) -> None:
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={encoding}">' if is_declared else ""
    text = "Заселение в общежитие начинается двадцать пятого августа"
    assert read_text(tmp_path, f"<html><head>{meta}</head><p>{text}".encode(encoding)) == text


def test_html_with_a_wrong_charset_is_guessed(tmp_path: Path) -> None:
    text = "Заселение в общежитие начинается двадцать пятого августа"
    assert read_text(tmp_path, f"<meta charset=utf-8><p>{text}".encode("cp1251")) == text
    assert read_text(tmp_path, f"<meta charset=windows-1251><p>{text}".encode()) == text


HOSTILE_PIECES = ["<!--", "<", "<a ", "<a b='", '<a b="x>', "<script>", "<nav/>", "</div>", "&#", "<td>", "<p>x"]


@pytest.mark.parametrize("piece", HOSTILE_PIECES)
def test_hostile_html_needs_linear_time(tmp_path: Path, piece: str) -> None:
    started = time.monotonic()
    text = read_text(tmp_path, piece * 100_000 + "<p>конец страницы</p>")
    assert time.monotonic() - started < 30
    assert "конец страницы" in text


def test_html_with_many_or_long_attributes_needs_linear_time(tmp_path: Path) -> None:
    started = time.monotonic()
    attributes = " ".join(f"a{number}=x" for number in range(100_000))
    assert (
        read_text(tmp_path, f"<a {attributes} b='{'x' * 10_000_000}'>a</a>" + "<div>" * 1_900 + "</p>" * 100_000) == "a"
    )
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("piece", ["<div>", "<nav>", "<main>x", "<div></p>"])
def test_too_deep_html_is_rejected_with_reason(tmp_path: Path, piece: str) -> None:
    write_files(tmp_path, a__html=piece * 100_000 + "<p>конец страницы</p>")
    assert problems_of(tmp_path) == ["a.html: nested in more than 2000 levels, or without end"]


# DOCX


def test_docx_gives_paragraphs_tables_tabs_and_breaks(tmp_path: Path) -> None:
    cell = "<w:tc>{}</w:tc>".format
    rows = [
        f"<w:tr>{cell(docx_paragraph('a') + docx_paragraph('b'))}{cell(docx_paragraph('c'))}</w:tr>",
        f"<w:tr>{cell(docx_paragraph())}{cell(docx_paragraph('d'))}</w:tr>",
    ]
    body = (
        docx_paragraph("Заголовок ", "документа", style="Heading1")
        + docx_paragraph("1 &lt; 2")
        + "<w:p><w:r><w:t>x</w:t><w:tab/><w:t>y</w:t><w:br/><w:t>z</w:t><w:delText>нет</w:delText></w:r></w:p>"
        + f"<w:tbl>{''.join(rows)}</w:tbl>"
        + f"<w:moveFrom>{docx_paragraph('нет')}</w:moveFrom>"
        + docx_paragraph("конец")
    )
    page = read_page(tmp_path, "a.docx", make_docx(body))
    title = "Заголовок документа"
    assert page == Page("a.docx", None, title, f"{title}\n1 < 2\nx\ty\nz\na b\tc\n\td\nконец")


ENTITY_BOMB = "".join(f'<!ENTITY {name} "{f"&{inner};" * 10}">' for inner, name in pairwise("abcdefghi"))


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE d [<!ENTITY i SYSTEM "file:///etc/passwd">]>',
        f'<!DOCTYPE d [<!ENTITY a "lol">{ENTITY_BOMB}]>',
        '<!DOCTYPE d SYSTEM "http://127.0.0.1:1/x.dtd">',
    ],
)
def test_docx_with_doctype_is_rejected(tmp_path: Path, doctype: str) -> None:
    write_files(tmp_path, a__docx=make_docx(docx_paragraph("&i;"), doctype))
    assert problems_of(tmp_path) == [
        "a.docx: its XML declares a DOCTYPE or an entity, which Word never writes; save the document again"
    ]


@pytest.mark.slow("process: its memory is measured")
def test_zip_bombs_are_rejected_with_little_memory(tmp_path: Path) -> None:
    write_files(tmp_path, ratio__docx=make_docx(docx_paragraph(" " * 30_000_000)))
    varied_text = "".join(f"{number:x} " for number in range(11_000_000))
    write_files(tmp_path, size__docx=make_docx(docx_paragraph(varied_text)))
    del varied_text
    tracemalloc.start()
    try:
        problems = problems_of(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()
    message = "word/document.xml unpacks to more than"
    assert problems == [
        f"ratio.docx: {message} 200 times its size, as zip bombs do; save the document again",
        f"size.docx: {message} 64 MiB, the most that is read; split the document",
    ]


def test_zip_with_false_size_is_rejected(tmp_path: Path) -> None:
    content = make_docx(docx_paragraph(" " * 5_000_000))
    size = 5_000_000
    with zipfile.ZipFile(BytesIO(content)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    write_files(tmp_path, a__docx=content.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little")))
    assert len(problems_of(tmp_path)) == 1


def test_damaged_docx_is_reported_with_reason(tmp_path: Path) -> None:
    valid_content = make_docx(docx_paragraph("Текст"))
    encrypted = bytearray(valid_content)
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        encrypted[encrypted.index(mark) + offset] |= 1
    workbook = BytesIO()
    with zipfile.ZipFile(workbook, "w") as archive:
        archive.writestr("xl/workbook.xml", "<a/>")
    write_files(
        tmp_path,
        a__docx=valid_content[:100],
        b__docx=bytes(encrypted),
        c__docx=b"\xd0\xcf\x11\xe0" + bytes(600),
        d__docx=workbook.getvalue(),
        e__docx=make_docx("<w:p>"),
        f__docx=b"not a zip",
    )
    reasons = [problem.partition(": ")[2] for problem in problems_of(tmp_path)]
    assert [reason.partition(" (")[0] for reason in reasons] == [
        "damaged ZIP",
        "encrypted; save it without a password",
        "a document of old Word, or one with a password; save it as .docx without a password",
        "not a Word document: it has no word/document.xml",
        "damaged XML at line 1",
        "damaged ZIP",
    ]


def test_zip_with_huge_directory_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_DIRECTORY", 1_000)
    write_files(tmp_path, a__docx=make_docx(docx_paragraph("x"), **{f"m{number}": "" for number in range(100)}))
    assert problems_of(tmp_path)[0].startswith("a.docx: the list of the files in the ZIP has more than")


def test_deep_docx_is_read(tmp_path: Path) -> None:
    depth = 20_000
    body = "<w:tbl><w:tr><w:tc>" * depth + docx_paragraph("дно") + "</w:tc></w:tr></w:tbl>" * depth
    assert read_text(tmp_path, make_docx(body), "a.docx") == "дно"


# PDF


def test_pdf_gives_the_text_of_all_pages(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert read_text(tmp_path, make_pdf("First page.", "", "Third page."), "a.pdf") == "First page.\n\n\nThird page."
    assert capfd.readouterr() == ("", "")


def test_pdf_without_pypdf_is_counted_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, a__pdf=b"%PDF-1.4", b__pdf=b"%PDF-1.4")
    monkeypatch.setitem(sys.modules, "pypdf", None)
    problems = problems_of(tmp_path)
    assert problems == [
        "PDF files left out: 2, because pypdf is not installed; install it: pip install 'yarus[documents]'"
    ]
    assert told(problems[0], "ru").startswith("пропущено файлов PDF: 2")


def test_unreadable_pdf_is_reported_with_reason(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    valid_content = make_pdf("Text")
    write_files(
        tmp_path,
        a__pdf=make_pdf("Secret", encrypt="word"),
        b__pdf=b"%PDF-1.4 broken",
        c__pdf=valid_content[: len(valid_content) // 2],
    )
    problems = problems_of(tmp_path)
    assert problems[0] == "a.pdf: encrypted; save it without a password"
    assert [problem.partition(" (")[0] for problem in problems[1:]] == ["b.pdf: damaged PDF", "c.pdf: damaged PDF"]
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("pypdf").level == logging.NOTSET


def test_any_damaged_pdf_is_one_problem_line(tmp_path: Path) -> None:
    valid_content = make_pdf("Text of one page", "Text of another")
    (tmp_path / "good.md").write_text("Текст")
    for position in range(9, len(valid_content), 23):
        (tmp_path / "a.pdf").write_bytes(valid_content[:position] + b"<<9" + valid_content[position + 3 :])
        pages_read, problems = read_pages(tmp_path)
        assert len(pages_read) == 2 or len(problems) == 1


def test_pdf_limits_are_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, a__pdf=make_pdf("One", "Two", "Three"))
    monkeypatch.setattr(pages, "MAX_PDF_PAGES", 2)
    pages_read, problems = read_pages(tmp_path)
    assert pages_read[0].text.split() == ["One", "Two"]
    assert problems == ["a.pdf: only the first 2 of 3 pages are read; split it"]
    monkeypatch.setattr(pages, "MAX_PDF_SECONDS", -1.0)
    with pytest.raises(InputError, match="reading stopped at page 1 of 3"):
        read_pages(tmp_path)


def test_pdf_with_owner_password_is_read(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter(clone_from=BytesIO(make_pdf("Open text")))
    writer.encrypt("", "owner", algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    assert read_text(tmp_path, file.getvalue(), "a.pdf") == "Open text"
