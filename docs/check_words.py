"""Count names and sentences that need a second reading, and fail if a count exceeds its ceiling.

Usage:
    python docs/check_words.py [--show COUNT]

`make check` runs it. The patterns are heuristics: a few matches are fine. Lower a ceiling when its count has fallen;
`--show of-first` prints every match of one count with its place.
"""

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILINGS = {
    "names": 28,
    "names in tests": 6,
    "generic modules": 0,
    "test names": 0,
    "what-first": 6,
    "of-first": 1,
    "where-first": 0,
    "per": 25,
    "is-none": 143,
    "dialect": 45,
    "says": 3,
    "long": 72,
    "commit subjects": 0,
}
PACKAGES = {"flows", "tasks", "metrics", "db", "deployments"}
VAGUE_NAMES = {"found", "one", "said", "of", "known", "given", "asked", "told", "shown"}
GENERIC_MODULES = re.compile(
    "documents|words|said|values|stored|numbers|apart|walk|between|since|beginning|found_out|made_with|standings|totals|"
    "telling|fill|draw|form|parts|price"
)
GENERATED = re.compile(r"docs/(metrics|simulations|simulations/.*)\.md")
PROSE_KEYWORDS = {"help", "description", "comment", "measures", "formula", "reading", "trust", "undefined", "meaning"}
MESSAGES = re.compile(r"\w+Error|\w+Unavailable|SourceChanged|Words|Message|BadValue|Unfit|nothing_in|unknown")
LONGEST_SUBJECT, LONGEST_TEST_NAME, LONGEST_SENTENCE = 72, 60, 30
COUNTED = (
    "rows?|calls?|files?|lines?|columns?|entry|entries|pages?|numbers?|objects?|values?|lists?|models?|flows?|one|two|"
    "three|once|twice|verdicts?|tokens?|vectors?|texts?|parts?|scores?|labels?|process|processes|requests?|cost|times?|"
    "alarms?|points?|weights?|nights?|cases?"
)
UNITS = (
    "case question metric tier line year second minute month night process reply page arm call row text pair prompt "
    "kind source file user claim score chunk language command topic evaluation rule core key screen word batch answer "
    "thing group cluster reference passage token ranking unit record defect annotator request"
).replace(" ", "|")
PATTERNS = {
    "what-first": r"^(What|Who|Whoever|Whatever|Whom|Whose)\b(?!.*\?$)",
    "of-first": r"^Of\b",
    "where-first": r"^Where\b[^?]*,",
    "per": rf"\b(?:{COUNTED}) an? (?:{UNITS})\b",
    "is-none": r"\b(?:is|are|was|were|be|becomes?) (?:no|none)\b(?! longer| more\b)",
    "dialect": r"\b(?:anew|amiss|parted|lest|mend(?:s|ed|ing)?|by and by|is told|are told|told (?:of|by|from)|"
    r"(?:comes?|came) to\b|stands? (?:beside|beneath|alone|apart|there|in|on|to|for)|held against|but for\b|"
    r"of (?:its|their) own|otherwise than|goes by|rings?\b|is to be|taken for|somebody|nobody|merely|hardly)\b",
    "says": r"\b(?:it|that|this|which|nothing|evaluation|night|log|row|metric) (?:says?|tells?)\b",
}

Match = tuple[str, str]
"""The name of a count, and the place and text of one match."""


def main() -> int:
    """Print all counts and their ceilings; return 1 if one is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", choices=CEILINGS, help="print every match of this count")
    show = parser.parse_args().show
    matches: dict[str, list[str]] = {name: [] for name in CEILINGS}
    for name, place in all_matches():
        matches[name].append(place)
    if show:
        print(*matches[show], sep="\n")
        return 0
    print(*(f"{name} {len(places)} (at most {CEILINGS[name]})" for name, places in matches.items()), sep="; ")
    exceeded = [name for name, places in matches.items() if len(places) > CEILINGS[name]]
    for name in exceeded:
        print(f"{name}: too many; see them with `python docs/check_words.py --show '{name}'`", file=sys.stderr)
    return 1 if exceeded else 0


def all_matches() -> Iterator[Match]:
    """Yield every match in the tracked files and in the subjects of the last hundred commits."""
    for name in git("ls-files", "-z").split("\0"):
        path = Path(name)
        if path.suffix in {".py", ".md", ".toml"} and not GENERATED.fullmatch(name) and (ROOT / path).exists():
            yield from file_matches(path, (ROOT / path).read_text(encoding="utf-8"))
    for subject in git("log", "--no-merges", "--max-count=100", "--format=%s").splitlines():
        if len(subject) > LONGEST_SUBJECT:
            yield "commit subjects", subject


def git(*arguments: str) -> str:
    """Return the output of a git command in this checkout."""
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True).stdout


def file_matches(path: Path, text: str) -> Iterator[Match]:
    """Yield the matches in one file: names of Python code, sentences of everything but tests."""
    prose: Iterator[tuple[int, str]] = iter(())
    if path.suffix == ".py":
        tree = ast.parse(text)
        if path.parts[0] == "tests":
            yield from test_name_matches(path, tree)
        elif path.parts[0] in PACKAGES:
            yield from name_matches(path, tree)
            prose = python_prose(tree)
    elif path.suffix == ".md" and path.parts[0] != "tests" and not path.stem.endswith(".ru"):
        prose = markdown_prose(text)
    elif path.as_posix() == "tasks/config/texts/en.toml":
        prose = toml_prose(text)
    for line, paragraph in prose:
        for sentence in sentences_in(paragraph):
            for pattern in pattern_matches(sentence):
                yield pattern, f"{path}:{line}: {sentence[:200]}"


def name_matches(path: Path, tree: ast.Module) -> Iterator[Match]:
    """Yield the vague names that a module binds, and the module if its own name is generic."""
    if GENERIC_MODULES.fullmatch(path.stem) and "migrations" not in path.parts:
        yield "generic modules", path.as_posix()
    for line, name in bound_names(tree):
        if name in VAGUE_NAMES:
            yield "names", f"{path}:{line}: {name}"


def test_name_matches(path: Path, tree: ast.Module) -> Iterator[Match]:
    """Yield the vague names that a test module binds, and its long test names."""
    for line, name in bound_names(tree):
        if name in VAGUE_NAMES:
            yield "names in tests", f"{path}:{line}: {name}"
        if name.startswith("test_") and len(name) > LONGEST_TEST_NAME:
            yield "test names", f"{path}:{line}: {name}"


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and name of every assignment, loop target, parameter, function and class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name.lstrip("_")


def python_prose(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, descriptions and message templates of a module with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            text = re.split(r"\n\s*Examples?:\n", constant_text(node.value))[0]
            for part in re.split(r"\n\s*\n|\n(?=\s*[\w, ]+: )|\n\s*(?:Args|Returns|Raises|Yields):\n", text):
                yield node.lineno, part
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            values = [*node.args] if MESSAGES.fullmatch(called) else []
            values += [keyword.value for keyword in node.keywords if keyword.arg in PROSE_KEYWORDS]
            yield from ((value.lineno, constant_text(value)) for value in values)


def constant_text(node: ast.AST) -> str:
    """Return the text of a string constant, or an empty text."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def markdown_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, headings and table cells, without code and generated tables."""
    blank = re.compile(r"^ *```.*?^ *```|<!-- kinds.*?<!-- end -->|<!--.*?-->", re.MULTILINE | re.DOTALL)
    text = blank.sub(lambda match: "\n" * match[0].count("\n"), text)
    first_line, paragraph = 0, ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        item = re.match(r"(?:[-*]|\d+\.) ", stripped)
        if paragraph and (not stripped or item or stripped.startswith(("#", "|"))):
            yield first_line, paragraph
            paragraph = ""
        if stripped.startswith("|"):
            yield from ((number, cell.strip()) for cell in stripped.strip("|").split("|"))
        elif stripped.startswith("#"):
            yield number, stripped.lstrip("# ")
        elif stripped:
            first_line = first_line if paragraph else number
            paragraph = f"{paragraph} {stripped[item.end() :] if item else stripped}".strip()


def toml_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of a TOML file with their lines."""
    lines = text.splitlines()
    tables = [tomllib.loads(text)]
    while tables:
        for value in tables.pop().values():
            if isinstance(value, dict):
                tables.append(value)
            elif isinstance(value, str):
                start = value.strip().split("\n")[0][:40]
                yield next((number for number, line in enumerate(lines, 1) if start and start in line), 1), value


def sentences_in(paragraph: str) -> list[str]:
    """Return the sentences of a paragraph, without inline code and link targets."""
    text = re.sub(r"`[^`]*`", "X", paragraph)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("\n", " ")
    return [part.strip() for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z«\"(])", text) if part.strip()]


def pattern_matches(sentence: str) -> Iterator[str]:
    """Yield the names of the patterns that a sentence matches."""
    n_words = len(re.findall(r"[\w'-]+", sentence))
    if n_words > LONGEST_SENTENCE:
        yield "long"
    for name, pattern in PATTERNS.items():
        if (n_words >= 4 or not pattern.startswith("^")) and re.search(pattern, sentence):
            yield name


if __name__ == "__main__":
    sys.exit(main())
