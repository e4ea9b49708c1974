"""Read the pages of a knowledge base from a folder or a file: Markdown, plain text, HTML, DOCX and PDF."""

import logging
import os
import re
import stat
import struct
import time
import unicodedata
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from xml.parsers import expat

import yaml  # type: ignore[import-untyped]
from lxml import etree  # type: ignore[import-untyped]

from yarus.db.errors import InputError, list_first_ids
from yarus.db.importers.archives import BLOCK, open_archive, read_member
from yarus.db.importers.encodings import decode_text
from yarus.db.loading.recorded import Record
from yarus.db.messages import Words, join_messages

MAX_FILE_BYTES = 32 << 20
"""Bytes of a file."""
MAX_FRONT_MATTER = 1 << 16
MAX_PDF_PAGES = 5_000
MAX_PDF_SECONDS = 60.0
MAX_NAMED_FILES = 5
"""Number of files that are not pages up to which each has a line; more are counted in one line."""
PLAIN_SUFFIXES = (".md", ".markdown", ".txt", ".rst")
SUFFIXES = (*PLAIN_SUFFIXES, ".html", ".htm", ".docx", ".pdf")
SYSTEM_FILES = ("__macosx", "thumbs.db", "desktop.ini")
"""Names of system files in small letters; hidden files are skipped too."""
HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!doctype\s+html|<html)\b", re.IGNORECASE)
OLE_START = b"\xd0\xcf\x11\xe0"
"""First bytes of documents of old Word, and of new ones with a password."""
CONFLUENCE_NAME = re.compile(r".+_(\d{3,})\.html?", re.IGNORECASE)
"""A page of a Confluence HTML export: Title_PAGEID.html."""


@dataclass(frozen=True)
class Page:
    """A page of a knowledge base."""

    name: str
    """Its path relative to the folder, with `/`."""
    url: str | None
    """Its address, if the page contains it."""
    title: str | None
    text: str

    def address(self) -> str:
        """Return the name of the page in the source: its URL, or else its file name."""
        return self.url or self.name

    def names(self) -> tuple[str, ...]:
        """Return every name that a label may use: URL, relative path, file name, stem, and Confluence's page id."""
        file_name = self.name.rpartition("/")[2]
        confluence = CONFLUENCE_NAME.fullmatch(file_name)
        names = [self.url, self.name, file_name, file_name.rpartition(".")[0], confluence and confluence[1]]
        return tuple(dict.fromkeys(name for name in names if name))


def is_page(path: Path) -> bool:
    """Return whether a file is a page, by its first bytes or its suffix."""
    try:
        return path.is_file() and _choose_reader(path, _read_start(path)) is not None
    except OSError:
        return False


def iter_pages(path: Path, problems: list[str]) -> Iterator[Page]:
    """Read the pages of a folder, with its subfolders, or of one file.

    Args:
        path: of the folder or file.
        problems: receives one line per file that is not a page with text; complete when the iterator ends.

    Returns:
        The pages by name; one at a time is in memory. No two have the same address.

    Raises:
        InputError: the path does not exist, is an export that is not supported, or has no page with text.
    """
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
        _refuse_known_exports(path if is_folder else path.parent, only=None if is_folder else path.name)
    except OSError as error:
        raise InputError("{path}: {reason}; nothing was loaded", path=path, reason=error.strerror or error) from None
    files = _list_files(path, problems) if is_folder else {_normalize_file_name(path.name): path}
    return _iter_files(path, files, problems)


def _iter_files(path: Path, files: Mapping[str, Path], problems: list[str]) -> Iterator[Page]:
    """Read the pages of a folder's files, and refuse a folder without any."""
    others: dict[str, bool] = {}
    n_unread_pdf = 0
    first_names: dict[str, str] = {}
    for name, file in files.items():
        try:
            page = _read_file(name, file, problems)
        except _NotAPage as signal:
            others[name] = signal.is_text
        except _NoPdfReader:
            n_unread_pdf += 1
        except InputError as error:
            problems += error.args
        except OSError as error:
            problems.append(Words("{name}: {reason}", name=name, reason=error.strerror or error))
        else:
            first_name = first_names.setdefault(page.address(), name)
            if first_name != name:
                problems.append(
                    Words(
                        "{name}: its address {url} is that of {first}, too; its file name is used instead",
                        name=name, url=page.url, first=first_name,
                    )
                )  # fmt: skip
                page = replace(page, url=None)
            yield page
    problems += _describe_other_files(others, n_unread_pdf)
    if not first_names:
        raise _no_pages_error(path, list(files), problems)


def _describe_other_files(others: Mapping[str, bool], n_unread_pdf: int) -> Iterator[Words]:
    """Describe the files that are not pages.

    Args:
        others: name -> whether it is a text.
        n_unread_pdf: number of PDF files that cannot be read because pypdf is missing.
    """
    readable = " ".join(SUFFIXES)
    if len(others) > MAX_NAMED_FILES:
        names = ", ".join([*others][:MAX_NAMED_FILES])
        yield Words("{n} files are not pages ({readable}): {names}, …", n=len(others), readable=readable, names=names)
    else:
        for name, is_text in others.items():
            yield (
                Words("{name}: not a page; pages are {readable} files", name=name, readable=readable)
                if is_text
                else Words("{name}: not a text file", name=name)
            )
    if n_unread_pdf:
        yield Words(
            "PDF files left out: {n}, because pypdf is not installed; install it: pip install 'yarus[documents]'",
            n=n_unread_pdf,
        )


def _no_pages_error(path: Path, names: Sequence[str], problems: Sequence[str]) -> InputError:
    """Build the error for a folder without a page: the files in it, and the readable formats."""
    readable = " ".join(SUFFIXES)
    if not names:
        return InputError("{path}: no files; pages are {readable} files", path=path, readable=readable)
    return InputError(
        "{path}: no page with text among {names}; pages are {readable} files. {problems}",
        path=path,
        names=list_first_ids(names),
        readable=readable,
        problems=join_messages(problems[:MAX_NAMED_FILES]),
    )


def _refuse_known_exports(folder: Path, only: str | None) -> None:
    """Refuse exports whose files look like pages or tables but are not.

    Args:
        folder: that may be such an export.
        only: the name of the file to read, if it is a single one.

    Raises:
        InputError: an XML export of Confluence, or an export of Slack.
    """
    if only in (None, "entities.xml") and (folder / "entities.xml").is_file():
        raise InputError(
            "{path}: an XML export of Confluence (entities.xml), which is not supported; nothing was loaded. Export "
            "the space as HTML and name that folder",
            path=folder,
        )
    if only is None and all((folder / name).is_file() for name in ("users.json", "channels.json")):
        raise InputError(
            "{path}: an export of Slack (users.json, channels.json), which is not supported; nothing was loaded. "
            "Write a CSV with the columns question and answer",
            path=folder,
        )


# Files


def _list_files(folder: Path, problems: list[str]) -> dict[str, Path]:
    """List the files below a folder by their names, without hidden ones and links that lead out of the folder."""
    root = Path(os.path.realpath(folder))
    files: dict[str, Path] = {}
    folders = [folder]
    while folders:
        parent = folders.pop()
        try:
            entries = [entry for entry in os.scandir(parent) if not _is_system_file(entry.name)]
            are_folders = [entry.is_dir(follow_symlinks=False) for entry in entries]
        except OSError as error:
            name = _relative_name(parent, folder)
            problems.append(Words("{name}: {reason}", name=name, reason=error.strerror or error))
            continue
        folders += [Path(entry.path) for entry, is_folder in zip(entries, are_folders, strict=True) if is_folder]
        for entry in (entry for entry, is_folder in zip(entries, are_folders, strict=True) if not is_folder):
            path = Path(entry.path)
            name = _relative_name(path, folder)
            target = Path(os.path.realpath(path)) if entry.is_symlink() else path
            if entry.is_symlink() and not target.is_relative_to(root):
                problems.append(Words("{name}: a link that leads out of the folder; left out", name=name))
            elif not _is_folder(target):
                files[name] = path
    return dict(sorted(files.items()))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # the reader reports the reason
        return False


def _is_system_file(name: str) -> bool:
    return name.startswith((".", "~$")) or name.lower() in SYSTEM_FILES


def _relative_name(path: Path, folder: Path) -> str:
    return _normalize_file_name(path.relative_to(folder).as_posix())


def _normalize_file_name(name: str) -> str:
    """Return a file name as tables write it: macOS splits letters such as й, and old systems have no UTF-8."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))


class _NotAPage(Exception):
    """The file is of another kind."""

    def __init__(self, *, is_text: bool = False) -> None:
        super().__init__()
        self.is_text = is_text


class _NoPdfReader(Exception):
    """The file is a PDF, and pypdf is not installed."""


@dataclass(frozen=True)
class _Content:
    """The content of a file."""

    text: str
    title: str | None = None
    url: str | None = None
    problem: str | None = None
    """Why a part of the file was not read."""


_Reader = Callable[[Path], _Content]


def _read_file(name: str, path: Path, problems: list[str]) -> Page:
    """Read a file.

    Raises:
        InputError: the file has no text, is too large or damaged.
        OSError: the file cannot be read.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise _NotAPage
    start = _read_start(path)
    reader = _choose_reader(path, start)
    if reader is None:
        raise _NotAPage(is_text=not _is_binary(decode_text(start)[0]))
    if status.st_size > MAX_FILE_BYTES:
        raise InputError(
            "{name}: {size} MiB, more than the {limit} MiB that are read; left out. Split it, or convert it to text",
            name=name,
            size=-(-status.st_size >> 20),
            limit=MAX_FILE_BYTES >> 20,
        )
    try:
        content = reader(path)
    except InputError as error:
        raise InputError("{name}: {reason}", name=name, reason=error) from None
    text = _clean_text(content.text)
    if content.problem:
        problems.append(Words("{name}: {reason}", name=name, reason=content.problem))
    if not text:
        if reader is _read_pdf and status.st_size:
            raise InputError("{name}: no text (a scan?)", name=name)
        raise InputError("{name}: no text", name=name)
    return Page(name, _clean_title(content.url), _clean_title(content.title), text)


def _read_start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1_000)


def _choose_reader(path: Path, start: bytes) -> _Reader | None:
    """Return the reader of a file, by its first bytes, else by its suffix; None if it is not a page."""
    suffix = path.suffix.lower()
    if start.startswith(b"%PDF-"):
        return _read_pdf
    if HTML_START.match(start) and suffix in (*SUFFIXES, ".xhtml", ""):
        return _read_html
    readers = dict.fromkeys(PLAIN_SUFFIXES, _read_plain) | dict.fromkeys((".html", ".htm"), _read_html)
    return (readers | {".docx": _read_docx, ".pdf": _read_pdf}).get(suffix)


def _clean_text(text: str) -> str:
    """Remove characters that a database cannot store, trailing spaces and surplus empty lines."""
    text = unicodedata.normalize("NFC", text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n"))
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    lines = [line.rstrip() for line in text.split("\n")]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")


def _clean_title(title: str | None) -> str | None:
    return " ".join(_clean_text(title).split()) or None if title else None


# Markdown and plain text

FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
URL_KEYS = ("url", "source", "permalink", "link")
CODE_FENCE = re.compile(r"\s{0,3}(```|~~~)")
MAX_HEADING_LENGTH = 200
"""Characters of an underlined heading: a paragraph above a rule is not one."""
UNDERLINE = re.compile(r"([=\-~^\"*+#])\1{2,}\s*")


def _read_plain(path: Path) -> _Content:
    text, _ = decode_text(path.read_bytes())
    if _is_binary(text):
        raise _NotAPage
    fields, text, problem = _split_front_matter(text)
    return _Content(text, _find_title(fields, text), _find_url(fields), problem)


def _is_binary(text: str) -> bool:
    """Return whether a text has more control characters than typing errors leave."""
    sample = text[:10_000].rstrip("\x1a")  # end mark of DOS texts
    controls = sum(letter < " " and letter not in "\t\n\r\f\v\x1b" for letter in sample)
    return controls * 100 > len(sample)


def _split_front_matter(text: str) -> tuple[Record, str, Words | None]:
    """Split a text into the fields of its YAML front matter, the text below it, and the problem with it."""
    match = FRONT_MATTER.match(text[:MAX_FRONT_MATTER])
    if not match:
        return {}, text, None
    try:
        fields = yaml.safe_load(match[1])
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        problem = Words("front matter is not YAML (line {line}: {error}); kept as text", line=line, error=error.problem)
        return {}, text, problem
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text, Words("front matter is not YAML; kept as text")
    if fields is None:
        return {}, text[match.end() :], None
    if not isinstance(fields, dict):  # two rules with a text between them
        return {}, text, None
    return {str(key).lower(): value for key, value in fields.items()}, text[match.end() :], None


def _find_url(fields: Mapping[str, Any]) -> str | None:
    """Return the first absolute address of the front matter, else the first path of a page on a site."""
    values = {key: fields[key].strip() for key in URL_KEYS if isinstance(fields.get(key), str)}
    words = {key: value for key, value in values.items() if len(value.split()) == 1}
    addresses = [value for value in words.values() if re.match(r"[a-z][a-z0-9+.-]*://.", value, re.IGNORECASE)]
    paths = [value for key, value in words.items() if key != "source" and "/" in value]
    return next(iter([*addresses, *paths]), None)


def _find_title(fields: Mapping[str, Any], text: str) -> str | None:
    """Return the title of the front matter, else the first heading of Markdown or reStructuredText."""
    title = fields.get("title")
    if isinstance(title, str | int | float | date) and not isinstance(title, bool) and str(title).strip():
        return str(title)
    previous_line, is_code = "", False
    for line in text.split("\n", 1_000)[:1_000]:
        if not is_code and previous_line and _is_underline(line, previous_line):
            return previous_line
        if CODE_FENCE.match(line):
            is_code = not is_code
        elif not is_code and (heading := _parse_heading(line)):
            return heading
        previous_line = "" if is_code or UNDERLINE.fullmatch(line) else line.strip()
    return None


def _is_underline(line: str, text: str) -> bool:
    """Return whether a line makes the text above it a heading."""
    if len(text) > MAX_HEADING_LENGTH or not UNDERLINE.fullmatch(line):
        return False
    return line[0] in "=-" or len(line.rstrip()) >= len(text)


def _parse_heading(line: str) -> str | None:
    """Return the text of a Markdown heading, `# Text` or `# Text #`."""
    marks, _, text = line.strip().partition(" ")
    if not 1 <= len(marks) <= 6 or marks.strip("#"):
        return None
    bare = text.rstrip("#")
    return (bare if bare.endswith(" ") else text).strip() or None


# HTML

CHARSET = re.compile(rb"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w-]+)""", re.IGNORECASE)
MAX_DEPTH = 2_000
"""Open elements; libxml2 compares an end tag that matches none with each of them."""
RAW_ELEMENTS = ("script", "style", "iframe", "noembed", "noframes", "title", "textarea")
"""Elements whose content has no tags."""
HIDDEN_ELEMENTS = {"script", "style", "iframe", "noembed", "noframes", "noscript", "template"}
DROPPED_ELEMENTS = {"nav", "header", "footer", "aside", "form"}
RANGE_ELEMENTS = (HIDDEN_ELEMENTS | DROPPED_ELEMENTS | {"main", "article"}).difference(RAW_ELEMENTS)
"""Elements that end at their end tags even if others are still open in them."""
RANGE_END = re.compile(rf"(?=</({'|'.join(sorted(RANGE_ELEMENTS))})\b)", re.IGNORECASE)
END_MARK = "yarus-end-"
RANGE_END_MARK = re.compile(rf"<{END_MARK}\w+/>")
FORM_TEXT_RATIO = 10
"""A form with this many times the text outside of it is the page, as in ASP.NET."""
REGIONS = ("main-content", "main", "article")
"""Parts with the text of a page, the best first; the first is an id that Confluence uses."""
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
PARAGRAPH_ELEMENTS = {
    *HEADINGS, "p", "pre", "blockquote", "table", "ul", "ol", "dl", "hr", "section", "article", "main",
    "figure", "details",
}  # fmt: skip
LINE_ELEMENTS = {
    "br", "div", "li", "tr", "dt", "dd", "option", "caption", "figcaption", "summary", "address", "fieldset", "legend",
    "header", "footer", "nav", "aside", "form", "body", "title",
}  # fmt: skip
SPACE, TAB, LINE, PARAGRAPH = GAPS = "\x1c\x1d\x1e\x1f"
"""Separators of texts, the narrowest first; between two texts the widest counts."""
GAP_TEXTS = {SPACE: " ", TAB: "\t", LINE: "\n", PARAGRAPH: "\n\n"}
ELEMENT_GAP = dict.fromkeys(LINE_ELEMENTS, LINE) | dict.fromkeys(PARAGRAPH_ELEMENTS, PARAGRAPH) | {"td": TAB, "th": TAB}


def _read_html(path: Path) -> _Content:
    content = path.read_bytes()
    declared = CHARSET.search(content[:4_096])
    text, _ = decode_text(content, declared[1].decode("ascii", "replace") if declared else None)
    if _is_binary(text):
        raise _NotAPage
    text = RANGE_END.sub(rf"<{END_MARK}\1/>", _remove_unclosed(text.replace("\0", "")))
    page = _HtmlPage(text)
    if page.unclosed:  # such as a <nav> that would hide the page: ignore the tag
        page = _HtmlPage(text, page.unclosed)
    return _Content(page.text(), page.title(), page.url)


def _remove_unclosed(text: str) -> str:
    """Remove the starts of comments and raw elements that never end, because they would hide the rest of the page."""
    for start, end in [("<!--", "--!?>"), *((rf"<{name}\b[^<>]*>?", rf"</{name}\b") for name in RAW_ELEMENTS)]:
        last = max((match.end() for match in re.finditer(end, text, re.IGNORECASE)), default=0)
        text = text[:last] + re.sub(start, "", text[last:], flags=re.IGNORECASE)
    tags, last_end, rest = text.rpartition(">")
    return tags + last_end + rest.replace("<", "&lt;")


class _HtmlPage:
    """The text, title and address of an HTML page: the target of its parser, which ends every element that it starts.

    Args:
        page: the whole page.
        ignored: numbers of tags to ignore.
    """

    def __init__(self, page: str, ignored: Container[int] = ()) -> None:
        self.url: str | None = None
        self.unclosed: set[int] = set()
        """Numbers of tags whose text is left out and whose end tags are missing."""
        self._ignored = ignored
        self._n_tags = 0
        self._n_open = Counter[str]()
        self._ranges: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """Open ranges by name: how many elements are open around them, and the numbers of their tags."""
        self._flows: dict[str, StringIO] = defaultdict(StringIO)
        """Texts of parts of the page."""
        self._active = frozenset({"body", "with forms", "everything"})
        """Names of the flows that the next text belongs to."""
        self._outer: list[frozenset[str]] = []
        """Names of the flows outside of each open element."""
        parser = etree.HTMLParser(target=self, encoding="utf-8", huge_tree=True)
        content = page.encode()
        for start in range(0, len(content), BLOCK):  # after an error, the parser reads the block to its end
            parser.feed(content[start : start + BLOCK])
        parser.close()

    def text(self) -> str:
        """Return the text of the best part that has any; a form that holds most of the page counts as its body."""
        body = "with forms" if len(self._join("form")) > FORM_TEXT_RATIO * len(self._join("body")) else "body"
        return next((text for text in map(self._join, (*REGIONS, body, "everything")) if text.strip()), "")

    def title(self) -> str | None:
        """Return the title, else the first heading."""
        return self._join("title") or self._join("heading") or None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Open an element."""
        if len(self._outer) == MAX_DEPTH:
            raise InputError("nested in more than {most} levels, or without end", most=MAX_DEPTH)
        self._n_tags += 1
        self._n_open[name] += 1
        self._note_address(name, attributes)
        if name.startswith(END_MARK):
            self._end_range(name.removeprefix(END_MARK))
        outer = self._active
        if self._n_tags not in self._ignored:
            self._active = self._choose_flows(name, attributes.get("id"))
            if name in RANGE_ELEMENTS:
                self._ranges[name].append((len(self._outer), self._n_tags))
        self._outer.append(outer)
        self._write(ELEMENT_GAP.get(name, ""), outer | self._active)

    def end(self, name: str) -> None:
        """Close the element that was opened last."""
        self._n_open[name] -= 1
        self._write(ELEMENT_GAP.get(name, ""), self._outer[-1] | self._active)
        self._active = self._outer.pop()
        if self._ranges[name] and self._ranges[name][-1][0] == len(self._outer):
            _, number = self._ranges[name].pop()
            if name in HIDDEN_ELEMENTS | DROPPED_ELEMENTS:
                self.unclosed.add(number)

    def _end_range(self, name: str) -> None:
        """Leave a range at its end tag, which libxml2 ignores if other elements are still open."""
        if self._ranges[name]:
            n_outer, _ = self._ranges[name].pop()
            inner, self._active = self._active, self._outer[n_outer]
            self._outer[n_outer:] = [self._active] * (len(self._outer) - n_outer)
            self._write(ELEMENT_GAP.get(name, ""), inner | self._active)

    def data(self, text: str) -> None:
        """Add a text; texts of raw elements may contain end marks."""
        text = RANGE_END_MARK.sub("", text)
        if self._n_open["pre"]:
            text = re.sub(f"[{GAPS}]", "", text)
        else:
            text = SPACE * text[:1].isspace() + " ".join(text.split()) + SPACE * text[-1:].isspace()
        self._write(text, self._active)

    def close(self) -> None:
        """End the page."""

    def _write(self, text: str, flows: Iterable[str]) -> None:
        for flow in (self._flows[name] for name in flows):
            flow.write(text if flow.tell() else text.lstrip(GAPS))

    def _join(self, flow: str) -> str:
        text = self._flows[flow].getvalue().rstrip(GAPS)
        return re.sub(f"[{GAPS}]+", lambda gaps: GAP_TEXTS[max(gaps[0])], text)

    def _choose_flows(self, name: str, identifier: str | None) -> frozenset[str]:
        """Return the flows of an element's text."""
        flows = self._active
        if name in HIDDEN_ELEMENTS or not flows:
            return frozenset()
        if name == "title":
            return frozenset(() if self._flows["title"].tell() or self._n_open["svg"] else ("title",))
        if name in ELEMENT_GAP:
            flows -= {"heading"}
        if name in HEADINGS and "body" in flows and not self._flows["heading"].tell():
            flows |= {"heading"}
        if name in DROPPED_ELEMENTS and not (name == "header" and flows & {*REGIONS}):
            is_form = name == "form" and "with forms" in flows
            flows = frozenset({"form", "with forms", "everything"} if is_form else {"everything"})
        region = REGIONS[0] if identifier == REGIONS[0] and name in ELEMENT_GAP and name not in HEADINGS else name
        return flows | {region} if region in REGIONS else flows

    def _note_address(self, name: str, attributes: Mapping[str, str]) -> None:
        is_canonical = name == "link" and "canonical" in attributes.get("rel", "").lower().split()
        is_open_graph = name == "meta" and attributes.get("property", attributes.get("name", "")).lower() == "og:url"
        address = attributes.get("href" if is_canonical else "content", "").strip()
        if "/" in address and len(address.split()) == 1 and (is_canonical or (is_open_graph and not self.url)):
            self.url = address


# DOCX

DOCX_DOCUMENT = re.compile(r"word/document\d*\.xml")
DOCX_HEADING = re.compile(r"title|heading ?\d|заголовок ?\d?|[1-9]", re.IGNORECASE)
SKIPPED_ELEMENTS = {"Fallback", "moveFrom"}
"""Elements whose text occurs twice in a DOCX."""


def _read_docx(path: Path) -> _Content:
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        return _Content("")
    if start == OLE_START:
        raise InputError("a document of old Word, or one with a password; save it as .docx without a password")
    with open_archive(path) as archive:
        name = next((name for name in archive.namelist() if DOCX_DOCUMENT.fullmatch(name)), None)
        if name is None:
            raise InputError("not a Word document: it has no word/document.xml")
        document = _DocxText()
        document.feed(read_member(archive, name))
    return _Content(document.text(), document.title)


class _DocxText:
    """The text of a Word document: one line per paragraph and per table row, with tabs between cells."""

    def __init__(self) -> None:
        self.title: str | None = None
        self._text = StringIO()
        self._is_text = self._is_heading = False
        self._n_cells = self._n_skipped = 0
        self._paragraph: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse

    def feed(self, blocks: Iterator[bytes]) -> None:
        """Read the XML.

        Raises:
            InputError: the XML is damaged, or declares a document type or entities.
        """
        try:
            for block in blocks:
                self._parser.Parse(block, False)
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise InputError(
                "damaged XML at line {line} ({error}); save the document again",
                line=error.lineno,
                error=expat.ErrorString(error.code),
            ) from None

    def text(self) -> str:
        """Return the text without tabs and spaces at the ends of cells and rows."""
        return re.sub(r"(?<! ) *+\t *+", "\t", self._text.getvalue())

    def _refuse(self, *_: object) -> None:
        raise InputError("its XML declares a DOCTYPE or an entity, which Word never writes; save the document again")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        self._n_skipped += name in SKIPPED_ELEMENTS
        self._n_cells += name == "tc"
        self._is_text = name == "t"
        signs = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
        if name in signs:
            self._write(" " if self._n_cells and name != "noBreakHyphen" else signs[name])
        elif name == "p":
            self._paragraph, self._is_heading = [], False
        elif name == "pStyle":
            style = next((value for key, value in attributes.items() if key.endswith(" val")), "")
            self._is_heading = DOCX_HEADING.fullmatch(style) is not None

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        self._n_skipped -= name in SKIPPED_ELEMENTS
        self._n_cells -= name == "tc"
        self._is_text = False
        if name == "p":
            if self._is_heading and self.title is None:
                self.title = "".join(self._paragraph).strip() or None
            self._write(" " if self._n_cells else "\n")
        elif name in ("tc", "tr"):
            self._write("\t" if name == "tc" else "\n")

    def _add(self, text: str) -> None:
        if self._is_text:
            self._write(text)

    def _write(self, text: str) -> None:
        if self._n_skipped:
            return
        self._text.write(text)
        if self._is_heading:
            self._paragraph.append(text)


# PDF

PDF_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, RecursionError,
              TypeError, ValueError, EOFError, struct.error, zlib.error)  # fmt: skip
"""Errors that pypdf raises for damaged files besides its own."""


class _OutOfTime(Exception):
    """A PDF exceeds its time limit."""


def _read_pdf(path: Path) -> _Content:
    try:
        import pypdf
    except ImportError:
        raise _NoPdfReader from None
    content = path.read_bytes()
    if not content:
        return _Content("")
    errors = (pypdf.errors.PyPdfError, pypdf.errors.DependencyError, *PDF_ERRORS)
    with _silence_logger("pypdf"):
        try:
            reader = pypdf.PdfReader(BytesIO(content))
            is_locked = reader.is_encrypted and not reader.decrypt("")
            n_pages = 0 if is_locked else len(reader.pages)
        except pypdf.errors.DependencyError:
            is_locked = True
        except errors as error:
            raise InputError("damaged PDF ({error}); save it again", error=_describe_error(error)) from None
        if is_locked:
            raise InputError("encrypted; save it without a password")
        return _read_pdf_pages(reader.pages, n_pages, errors)


def _read_pdf_pages(pages: Sequence[Any], n_pages: int, errors: tuple[type[Exception], ...]) -> _Content:
    """Read the text of a PDF's pages within the limits; damaged pages are skipped."""
    texts: list[str] = []
    n_damaged, error_text, deadline = 0, "", time.monotonic() + MAX_PDF_SECONDS

    def check_time(*_: object) -> None:
        if time.monotonic() > deadline:
            raise _OutOfTime

    for number in range(min(n_pages, MAX_PDF_PAGES)):
        try:
            check_time()
            texts.append(pages[number].extract_text(visitor_operand_before=check_time))
        except _OutOfTime:
            problem = Words(
                "reading stopped at page {number} of {n} after {limit} s; the pages before it are kept",
                number=number + 1,
                n=n_pages,
                limit=round(MAX_PDF_SECONDS),
            )
            return _Content("\n\n".join(texts), problem=problem)
        except errors as error:
            n_damaged, error_text = n_damaged + 1, error_text or _describe_error(error)
    if n_damaged == n_pages > 0:
        raise InputError("damaged PDF ({error}); save it again", error=error_text)
    return _Content("\n\n".join(texts), problem=_describe_lost_pages(n_pages, n_damaged, error_text))


def _describe_lost_pages(n_pages: int, n_damaged: int, error: str) -> Words | None:
    if n_damaged:
        return Words("{n} of {total} pages are damaged ({error}); left out", n=n_damaged, total=n_pages, error=error)
    if n_pages > MAX_PDF_PAGES:
        return Words("only the first {limit} of {n} pages are read; split it", limit=MAX_PDF_PAGES, n=n_pages)
    return None


def _describe_error(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


@contextmanager
def _silence_logger(library: str) -> Iterator[None]:
    """Keep a library's warnings and log lines off the terminal."""
    logger = logging.getLogger(library)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
