"""Load files as users have them; each must give the facts in `expected.json` by the command stated there.

`select_cases` registers the keys of `expected.json` that a test covers; the last test fails for an uncovered key.
"""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.support.command_line import ENGLISH, CommandResult, run_here
from tests.support.evaluations import evaluate, get_value
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from tests.support.processes import find_free_port, is_port_open, wait_for
from tests.support.promises import check_promises
from yarus.db.importers.shapes import ASSERTION_REFERENCE, PASSAGE_KEYS, SHAPES

Case = dict[str, Any]
Documents = dict[str, Any]
CASES = Path(__file__).parents[4] / "shared" / "cases"
EXPECTED: dict[str, Case] = json.loads((CASES / "expected.json").read_text(encoding="utf-8")) if CASES.is_dir() else {}
REFUSED = {
    "11_promptfoo_results.json": r"each question stands 2 times, told apart by 'provider\.label' \(bot-a, bot-b\)\. "
    r"Choose one: --where provider\.label=bot-a",
    "38_unknown.jsonl": r"foo \(0\), bar \(xxxxx\), baz \(\[1, 2\]\)[\s\S]*--map question=NAME",
}
"""Cases that `init` refuses, and the remedy that it names."""
COMMENTS = {"numbers.how"}
"""Keys that explain how a number was computed, and are not checked."""
COUNTS = {
    "questions": "SELECT count(*) FROM {}.question_answer",
    "answers": "SELECT count(answer) FROM {}.question_answer",
    "with_contexts": "SELECT count(*) FROM {}.question_answer WHERE recorded -> 'contexts' IS NOT NULL",
    "users": "SELECT count(DISTINCT user_id) FROM {}.question_answer",
    "times": "SELECT count(created_at) FROM {}.question_answer",
    "references": "SELECT count(ground_truth_answer) FROM {}.annotation",
    "dialogs": "SELECT count(DISTINCT dialog_id) FROM {}.annotation",
    "unanswerable": "SELECT count(*) FROM {}.annotation WHERE NOT answerable",
    "labelled": "SELECT count(*) FROM {}.annotation WHERE coalesce(relevant_chunk_ids, relevant_urls, '[]') <> '[]' "
    "OR coalesce(relevant_urls, '[]') <> '[]'",
    "chunks": "SELECT count(DISTINCT text) FROM {}.chunk",
    "latency_ms": "SELECT array_agg((recorded ->> 'latency_ms')::float) FROM {}.question_answer",
    "tokens_in": "SELECT array_agg((recorded ->> 'tokens_in')::int) FROM {}.question_answer",
    "references_by_score": "SELECT count(*) FROM {}.question_answer WHERE score = 5",
}  # fmt: skip
TWO_CONTEXTS = "SELECT count(*) FROM {}.question_answer WHERE jsonb_array_length(recorded -> 'contexts') = 2"
WITH_JSON = "SELECT count(*) FROM {}.question_answer WHERE question ~ '[{{}}]' OR answer ~ '[{{}}]'"
VOTES = "SELECT count(score) FROM {}.question_answer"
URLS_OF_R9 = "SELECT relevant_urls FROM {}.annotation WHERE question_id = 'r9'"
VALUES: dict[tuple[str, str], list[tuple[str, Any]]] = {
    ("01", "trap"): [("SELECT count(*) FROM {}.question_answer WHERE length(id) < 16", 0)],
    ("01", "not_lost"): [("SELECT count(*) FROM {}.question_answer WHERE recorded -> 'contexts' = '[]'", 1)],
    ("02", "trap"): [
        ("SELECT recorded -> 'contexts' -> 0 ->> 'text' FROM {}.question_answer WHERE answer = 'Не знаю.'",
         "Расписание занятий висит у деканата."),
        ("SELECT count(*) FROM {}.chunk WHERE text = 'Бронь отменяют в личном кабинете за два часа до начала.'", 1),
    ],
    ("03", "trap"): [
        ("SELECT count(*) FROM {}.chunk WHERE text LIKE '%-hop>%'", 0),
        ("SELECT count(*) FROM {}.annotation WHERE jsonb_array_length(relevant_chunk_ids) = 2", 2),
    ],
    ("04", "trap"): [
        (TWO_CONTEXTS, 2),
        ("SELECT count(*) FROM {}.chunk "
         "WHERE text IN ('Абонемент работает на втором этаже.', 'Ключи выдаёт комендант.')", 2),
    ],
    ("05", "trap"): [("SELECT count(recorded) FROM {}.question_answer", 0)],
    ("06", "not_lost"): [("SELECT count(*) FROM {}.annotation WHERE relevant_chunk_ids IS NULL", 1)],
    ("07", "trap"): [(TWO_CONTEXTS, 2), ("SELECT count(*) FROM {}.chunk WHERE text LIKE 'Last boats: %'", 1)],
    ("09", "trap"): [("SELECT count(*) FROM {}.annotation WHERE ground_truth_answer ~ 'lower deck|:[^4]'", 0)],
    ("13", "trap"): [(WITH_JSON, 0)],
    ("14", "trap"): [(WITH_JSON, 0)],
    ("15", "trap"): [(WITH_JSON, 0), (COUNTS["questions"], 6)],
    ("16", "trap"): [(COUNTS["answers"], 0)],
    ("17", "not_lost"): [
        ("SELECT relevant_chunk_ids FROM {}.annotation WHERE ground_truth_answer LIKE 'Бронь отменяют %'", [])
    ],
    ("18", "trap"): [
        ("SELECT count(*) FROM {0}.annotation, jsonb_array_elements_text(relevant_chunk_ids) AS label "
         "JOIN {0}.chunk ON chunk.id = label", 7),
        ("SELECT count(*) FROM {}.chunk WHERE id ~ '^node-r[1-7]-[01]$'", 9),
    ],
    ("20", "trap"): [(VOTES, 0), ("SELECT count(recorded -> 'latency_ms') FROM {}.question_answer", 0)],
    ("23", "trap"): [
        ("SELECT count(*) FROM {}.annotation WHERE ground_truth_answer LIKE '%{{%'", 0),
        ("SELECT count(recorded) FROM {}.question_answer", 0),
    ],
    ("25", "trap"): [(VOTES, 0)],
    ("27", "trap"): [
        ("SELECT relevant_urls FROM {}.annotation WHERE question_id = 'r3'",
         ["move-in.html", "https://wiki.example/dorm/rules"]),
        ("SELECT count(*) FROM {}.chunk WHERE id LIKE '%DS_Store%'", 0),
    ],
    ("28", "trap"): [(COUNTS["answers"], 0), (COUNTS["references"], 6)],
    ("29", "not_lost"): [
        ("SELECT recorded -> 'urls' FROM {}.question_answer WHERE recorded IS NOT NULL",
         ["https://wiki.example/dorm/move-in", "https://wiki.example/dorm/keys"]),
        ("SELECT count(*) FROM {}.question_answer WHERE confluence_url ~ '[,[:space:]]'", 0),
    ],
    ("30", "not_lost"): [
        ("SELECT array_agg(id ORDER BY id) FROM {}.question_answer", list("1234567")),
        ("SELECT array_agg(id ORDER BY id) FROM {}.question_answer WHERE score IS NULL", ["1", "6", "7"]),
        ("SELECT array_agg(id ORDER BY id) FROM {}.question_answer WHERE created_at IS NULL", ["4", "7"]),
        ("SELECT array_agg(id ORDER BY id) FROM {}.question_answer WHERE recorded -> 'latency_ms' IS NULL",
         ["5", "6", "7"]),
        ("SELECT array_agg(id ORDER BY id) FROM {}.question_answer WHERE recorded -> 'contexts' IS NULL", ["6"]),
    ],
    ("30", "also"): [
        ("SELECT recorded -> 'contexts' -> 0 ->> 'text' FROM {}.question_answer WHERE id = '2'",
         "На руки выдают не больше десяти книг на месяц."),
        ("SELECT confluence_url FROM {}.question_answer WHERE id = '3'", "https://wiki.example/dorm/move-in"),
    ],
    ("31", "trap"): [
        ("SELECT count(*) FROM {}.question_answer WHERE question = 'Итого'", 0),
        ("SELECT array_agg(DISTINCT score ORDER BY score) FROM {}.question_answer WHERE score IS NOT NULL", [1, 5]),
    ],
    ("32", "trap"): [(WITH_JSON, 0), (COUNTS["questions"], 8)],
    ("33", "not_lost"): [
        ("SELECT count(*) FROM {}.question_answer WHERE question = 'Можно ли привезти микроволновку?'", 1)
    ],
    ("34", "trap"): [
        ("SELECT count(*) FROM {}.question_answer JOIN {}.annotation ON question_id = id "
         "WHERE answer = ground_truth_answer", 0)
    ],
    ("36", "trap"): [("SELECT relevant_chunk_ids FROM {}.annotation WHERE question_id = 'arg-0'", {"arg-1": 1})],
    ("39", "not_lost"): [("SELECT question FROM {}.question_answer WHERE id = 'r9'", "Какая погода на Марсе?")],
    ("39", "trap"): [(URLS_OF_R9, []), (URLS_OF_R9.replace("relevant_urls", "answerable"), False)],
}  # fmt: skip
"""(Number of a case, key in prose) -> what the source must contain."""
WARNINGS: dict[str, list[str]] = {
    "01": [r"not needed: .*faithfulness \(1\.0\), answer_relevancy .*context_precision .*context_recall \("],
    "08": [r"retrieval_context: passages are divided by ';'"],
    "09": [r"rows with an assertion that is no reference answer: 2 \(contains, llm-rubric, latency\)"],
    "10": [r"questions without a reference: 3 of 6"],
    "11": [REFUSED["11_promptfoo_results.json"]],
    "12": [r"archived items that are left out: 1"],
    "22": [r"rows with several references: 1 \(.*:\d\); the first is used"],
    "24": [
        r"rows with several references: 1 \(q-r1\); the first is used",
        r"questions that need several passages together: 1 \(q-r3\); each passage counts as relevant",
    ],
    "25": [r"questions without a reference: 6 of 6"],
    "27": [
        r"empty\.md: no text",
        r"scan\.pdf: no text \(a scan\?\)",
        r"photo\.png: not a text file",
        r"PDF files left out: 2, because pypdf is not installed; install it: pip install 'yarus\[documents\]'",
    ],
    "28": [r"'answer' is taken as the reference, .*; if it is what the bot said: --map answer=answer"],
    "31": [
        r"sheet 'Обращения', header in row 4\n.*sheets that are not read: Как заполнять, Справочник",
        r"row 15: skipped, 'Итого' is a total, not a question",
    ],
    "33": [r"rows without an id: 1"],
    "35": [r"- .*retrieval.*: no passages of a knowledge base"],
    "36": [r"\b6 questions are documents themselves: their own id is left out of rankings, as BEIR does"],
    "38": [REFUSED["38_unknown.jsonl"]],
    "39": [r"not needed: must_include \("],
}  # fmt: skip
"""Number of a case -> pattern of each of its `warn`; those of case 30 are derived from its `warn`."""
OTHER_REFERENCES = {"03": 5, "09": 3, "23": 0}
"""Number of a case -> how many references come from the cases 34 and 35; of other cases all do."""
COLUMNS = {
    "question_answer": ("id", "question", "answer", "score", "user_id", "created_at", "confluence_url"),
    "annotation": (
        "ground_truth_answer", "relevant_chunk_ids", "relevant_urls", "cluster", "dialog_id", "answerable", "review",
    ),
}  # fmt: skip
PLAN_NAMES = {"review": "made_by", "url of the passage": "passage_url"}
"""Names in `mapping` -> names in the plan, where they differ."""

pytestmark = pytest.mark.skipif(not EXPECTED, reason="../shared/cases is not there")
_covered: set[str] = set(COMMENTS)


@pytest.fixture(scope="module", autouse=True)
def at_home(at_home_for_module: Path) -> Path:
    return at_home_for_module


@pytest.fixture(scope="module")
def init_reports() -> Documents:
    """Return the reports of `init` by case, so that each case is loaded once."""
    return {}


def keys_of(case: Case) -> set[str]:
    """Return the keys of a case, those of its numbers as `numbers.KEY`."""
    return {*case} - {"numbers"} | {f"numbers.{key}" for key in case.get("numbers", ())}


def select_cases(*keys: str, refused: bool = False) -> list[str]:
    """Return the cases that have any of these keys, and note that a test covers them."""
    _covered.update(keys)
    return [name for name, case in EXPECTED.items() if keys_of(case) & {*keys} and (refused or name not in REFUSED)]


def number_of(name: str) -> str:
    return name[:2]


def source_of(name: str) -> str:
    return f"case_{name.partition('.')[0]}"


def words_of(name: str, key: str = "command") -> list[str]:
    """Return the words of a case's command after `yarus`; a bot's address is given by the test that has a bot."""
    words = str(EXPECTED[name][key]).split()[1:]
    return [word for word in words if not word.startswith(("--sut", "http"))]


def run_words(words: list[str], source: str, *options: str) -> CommandResult:
    """Run a command in this process, in the folder of the cases, in English."""
    confirmation = ["--yes"] if words[0] == "init" else []
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.chdir(CASES)
        patch.setattr("yarus.flows.cli.init.ENV", Path(folder) / ".env")
        return run_here(*words, "--into", source, *confirmation, *options, env=ENGLISH)


def run_init(name: str, *options: str, source: str | None = None) -> CommandResult:
    words = words_of(name)
    return run_words(words if words[0] == "init" else words_of(name, "alt"), source or source_of(name), *options)


def load_case(name: str, init_reports: Documents) -> Any:
    if name not in init_reports:
        ran = run_init(name, "--json")
        assert ran.code == 0, ran.err
        init_reports[name] = ran.json
    return init_reports[name]


def scalar(engine: Engine, source: str, statement: str) -> Any:
    schema = f"source_{source}"
    with engine.connect() as connection:
        return connection.scalar(text(statement.format(schema, schema)))


def count(engine: Engine, source: str, case: Case) -> Case:
    """Count in a source what a case counts."""
    return {key: scalar(engine, source, statement) for key, statement in COUNTS.items() if key in case}


def counts_of(case: Case) -> Case:
    return {key: case[key] for key in COUNTS if key in case}


def is_loaded(engine: Engine, source: str) -> bool:
    return scalar(engine, source, "SELECT to_regclass('{}.question_answer')") is not None


@pytest.mark.parametrize("name", select_cases("command", *COUNTS))
def test_case_gives_expected_counts(name: str, init_reports: Documents, engine: Engine) -> None:
    load_case(name, init_reports)
    assert count(engine, source_of(name), EXPECTED[name]) == counts_of(EXPECTED[name])


@pytest.mark.parametrize("name", select_cases("level", "exit_code", refused=True))
def test_case_is_loaded_or_refused_by_level(name: str, init_reports: Documents, engine: Engine) -> None:
    case = EXPECTED[name]
    assert (case["level"] == "stop") == ("exit_code" in case)
    if name not in REFUSED:
        assert case["level"] in ("must", "should")
        load_case(name, init_reports)
        return
    assert case["level"] in ("should", "stop")
    ran = run_init(name)
    assert (ran.code, ran.out) == (case.get("exit_code", 2), "")
    assert re.search(REFUSED[name], ran.err), ran.err
    assert "nothing was loaded" in ran.err
    assert not is_loaded(engine, source_of(name))


@pytest.mark.parametrize("name", select_cases("alt"))
def test_alternative_command_loads_the_same(name: str, engine: Engine) -> None:
    """Run both commands as they are written; the tests above run only `init`."""
    counts_by_command = []
    for key in ("command", "alt"):
        source = f"{source_of(name)}_{key}"
        ran = run_words(words_of(name, key), source, "--json")
        assert ran.code == 0, ran.err
        assert count(engine, source, EXPECTED[name]) == counts_of(EXPECTED[name])
        counts_by_command.append(count(engine, source, COUNTS))
    assert counts_by_command[0] == counts_by_command[1]


def fits_mapping(field: str, described: str, column: str) -> bool:
    """Return whether the plan's column is the one that `expected.json` names or describes."""
    if described.isidentifier():
        return column == described
    if column == ASSERTION_REFERENCE:
        return field == "ground_truth_answer" and re.search(r"assert|__expected", described) is not None
    if column in (field, *PASSAGE_KEYS):  # rows that `records` makes of other documents
        return True
    return {*re.findall(r"\w+", column)} <= {*re.findall(r"\w+", described)}


def count_filled(engine: Engine, source: str, field: str) -> int:
    """Count the values of a column, in whichever table it is."""
    for table, columns in COLUMNS.items():
        if field in columns:
            return int(scalar(engine, source, f"SELECT count({field}) FROM {{}}.{table}"))
    if field in ("text", "url", "url of the passage") or field.startswith("chunks."):
        column = "confluence_url" if "url" in field else field.rpartition(".")[2]
        return int(scalar(engine, source, f"SELECT count({column}) FROM {{}}.chunk"))
    return int(scalar(engine, source, f"SELECT count(recorded -> '{field}') FROM {{}}.question_answer"))


def check_mapping(name: str, source: str, document: Any, engine: Engine) -> None:
    """Check that the plan maps the columns of a case, and that each of them has values."""
    mapped = [file["mapping"] for file in document["files"] if file["mapping"]]
    for alternatives, described in EXPECTED[name]["mapping"].items():
        fields = [part for part in re.split(r"/| or ", alternatives) if part != "page"]
        assert any(count_filled(engine, source, part) for part in fields), alternatives
        planned = {PLAN_NAMES.get(part, part.removeprefix("chunks.")) for part in fields}
        columns = [columns[part] for columns in mapped for part in planned if part in columns]
        is_of_passages = {*fields} & {"text", "url"}
        assert not mapped or is_of_passages or any(fits_mapping(fields[0], described, column) for column in columns), (
            alternatives, columns,
        )  # fmt: skip


@pytest.mark.parametrize("name", select_cases("mapping"))
def test_columns_are_mapped_and_filled(name: str, init_reports: Documents, engine: Engine) -> None:
    check_mapping(name, source_of(name), load_case(name, init_reports), engine)


@pytest.mark.parametrize("name", select_cases("ignored"))
def test_columns_without_use_are_listed(name: str, init_reports: Documents) -> None:
    unused = {column for file in load_case(name, init_reports)["files"] for column in file["unused"]}
    assert {*EXPECTED[name]["ignored"]} <= unused


@pytest.mark.parametrize("name", select_cases("mimics"))
def test_case_shape_names_its_tool(name: str, init_reports: Documents) -> None:
    """Check that a known shape is named after the tool whose file the case imitates."""
    tools = {word.casefold() for shape in SHAPES for word in re.findall(r"\b[A-Z]\w{3,}|^\w{5,}", shape.name)}
    expected_tools = tools & {*re.findall(r"\w+", EXPECTED[name]["mimics"].casefold())}
    shapes = " ".join(file["shape"] for file in load_case(name, init_reports)["files"])
    if expected_tools and number_of(name) != "35":  # a plain table that an example of ragas has, too
        assert {*re.findall(r"\w+", shapes.casefold())} & {*expected_tools, "traces"}


def read_texts() -> tuple[dict[str, str], dict[str, str]]:
    """Return the answers and the references of the questions that most cases use."""
    bot = (CASES / "stub_bot.py").read_text(encoding="utf-8")
    answers_by_question: dict[str, str] = dict(re.findall(r"'([^']+)': '([^']+)'", bot))
    references: dict[str, str] = {}
    for file, reference in (
        ("34_reference_no_label.csv", "ground_truth_answer"),
        ("35_blackbox.csv", "expected_answer"),
    ):
        for row in csv.DictReader((CASES / file).read_text(encoding="utf-8").splitlines()):
            references[row["question"]] = row[reference]
            if "answer" in row:
                answers_by_question[row["question"]] = row["answer"]
    assert (len(answers_by_question), len(references)) == (14, 14)
    return answers_by_question, references


def count_texts(engine: Engine, source: str) -> tuple[int, int]:
    """Count the answers and references of a source that belong to their question."""
    answers_by_question, references = read_texts()
    statement = "SELECT question, answer, ground_truth_answer FROM {0}.question_answer LEFT JOIN {0}.annotation "
    with engine.connect() as connection:
        rows = connection.execute(text(f"{statement}ON question_id = id".format(f"source_{source}"))).all()
    is_right = [answers_by_question.get(question) == answer for question, answer, _ in rows if answer is not None]
    is_meant = [references.get(question) == reference for question, _, reference in rows if reference is not None]
    return sum(is_right), sum(is_meant)


@pytest.mark.parametrize("name", select_cases("answers", "references"))
def test_answers_and_references_belong_to_questions(name: str, init_reports: Documents, engine: Engine) -> None:
    load_case(name, init_reports)
    case = EXPECTED[name]
    right, meant = count_texts(engine, source_of(name))
    assert right == case.get("answers", 0)
    if "references" in case:
        assert meant == OTHER_REFERENCES.get(number_of(name), case["references"])


@pytest.mark.parametrize("name", select_cases("first"))
def test_first_row_has_the_values(name: str, init_reports: Documents, engine: Engine) -> None:
    load_case(name, init_reports)
    for column, expected in EXPECTED[name]["first"].items():
        first = f"SELECT {column}::text FROM {{}}.question_answer ORDER BY created_at LIMIT 1"
        assert scalar(engine, source_of(name), first).startswith(expected.removesuffix(" (no zone)")), column


@pytest.mark.parametrize("name", select_cases("ids"))
def test_ids_are_those_of_the_file(name: str, init_reports: Documents, engine: Engine) -> None:
    load_case(name, init_reports)
    rows = list(csv.DictReader((CASES / name).read_text(encoding="utf-8").splitlines()))
    for row, expected in zip(rows, EXPECTED[name]["ids"], strict=True):
        with engine.connect() as connection:
            statement = f"SELECT id FROM source_{source_of(name)}.question_answer WHERE question = :question"
            question_id = connection.scalar(text(statement), {"question": row["question"]})
        assert re.fullmatch("[0-9a-f]{16}" if expected == "<hash>" else expected, question_id)


@pytest.mark.parametrize("name", select_cases("trap", "not_lost", "also"))
def test_values_are_neither_lost_nor_misread(name: str, init_reports: Documents, engine: Engine) -> None:
    load_case(name, init_reports)
    for key in ("trap", "not_lost", "also"):
        if key in EXPECTED[name]:
            for statement, expected in VALUES[number_of(name), key]:
                assert scalar(engine, source_of(name), statement) == expected, (key, statement)


@pytest.mark.parametrize("name", select_cases("pages"))
def test_pages_are_read_as_displayed(name: str, init_reports: Documents, engine: Engine) -> None:
    load_case(name, init_reports)
    folder = CASES / name / "pages"
    with engine.connect() as connection:
        statement = f"SELECT id, confluence_url, text FROM source_{source_of(name)}.chunk"
        pages = {page: (url, content) for page, url, content in connection.execute(text(statement))}
    special: dict[str, Callable[[str, str], bool]] = {
        "loan.txt": lambda url, content: content == (folder / "loan.txt").read_bytes().decode("cp1251").strip(),
        "move-in.html": lambda url, content: (
            content.split("\n\n")
            == re.findall("<(?:h1|p)>([^<]+)<", (folder / "move-in.html").read_text(encoding="utf-8"))
        ),
        "rules.md": lambda url, content: f"url: {url}\n" in (folder / "rules.md").read_text(encoding="utf-8"),
    }
    for page, expected in EXPECTED[name]["pages"].items():
        assert page in pages
        url, content = pages[page]
        assert content.strip()
        assert (page not in special) == (expected == 1), f"{page}: {expected}"
        assert page not in special or special[page](url, content), (page, url, content)


def print_begin(name: str, *options: str) -> str:
    """Return what `init` prints for a case; if it refuses, the reason."""
    ran = run_init(name, *options)
    assert ran.code == (2 if name in REFUSED else 0), ran.err
    return ran.out or ran.err


def patterns_of(name: str) -> list[str]:
    """Return the patterns of the `warn` of a case, one per warning."""
    if number_of(name) != "30":
        return WARNINGS[number_of(name)]
    matches = [re.fullmatch(r"(\w+) '?(.+?)'? of id (\d)", warning) for warning in EXPECTED[name]["warn"]]
    return [
        rf"{match[1]}: \d of \d not read \(.*'{re.escape(match[2])}' at {name}:{int(match[3]) + 1}\b"
        for match in matches
        if match
    ]


@pytest.mark.parametrize("name", [name for name in select_cases("warn", refused=True) if EXPECTED[name]["warn"]])
def test_warnings_are_printed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = print_begin(name)
    if number_of(name) == "27":
        assert ".DS_Store" not in printed
        monkeypatch.setitem(sys.modules, "pypdf", None)
        printed += print_begin(name, "--dry-run")
    for warning, pattern in zip(EXPECTED[name]["warn"], patterns_of(name), strict=True):
        assert re.search(pattern, printed), f"{warning}\n{pattern}\n{printed}"
    assert number_of(name) != "35" or printed.count("no passages of a knowledge base") == 1


@pytest.mark.parametrize("name", select_cases("numbers.run", "numbers.avg_rouge1_f", "numbers.n_scored"))
def test_numbers_match_manual_counts(name: str, init_reports: Documents) -> None:
    case = EXPECTED[name]
    numbers, tier = case["numbers"], case["numbers"]["run"].split()[2]
    document = load_case(name, init_reports)
    if "recorded" not in numbers["run"]:
        assert number_of(name) in ("35", "36")  # these need a bot or a retriever: see the tests below
        return
    assert tier in {ready["tier"] for ready in document["readiness"] if ready["missing"] is None}
    summary = evaluate(tier, source=source_of(name), sut="recorded")
    check_rouge(summary, numbers["avg_rouge1_f"], numbers["n_scored"])


def check_rouge(summary: Case, expected: float, n_scored: int) -> None:
    metric = summary["metrics"]["avg_rouge1_f"]
    assert (round(metric["value"], 4), metric["n_scored"]) == (expected, n_scored)
    assert summary["state"] == "completed"


@pytest.mark.parametrize("name", select_cases("numbers.first_retrieved_is_relevant"))
def test_first_recorded_context_is_relevant(name: str, init_reports: Documents, engine: Engine) -> None:
    load_case(name, init_reports)
    first = (
        "SELECT count(*) FROM {}.question_answer JOIN {}.annotation ON question_id = id "
        "WHERE relevant_chunk_ids ? (recorded -> 'contexts' -> 0 ->> 'id')"
    )
    counts = scalar(engine, source_of(name), first), scalar(engine, source_of(name), COUNTS["questions"])
    assert EXPECTED[name]["numbers"]["first_retrieved_is_relevant"].startswith("{} of {} ".format(*counts))


PROMISES = ("02_ragas02_evalset.jsonl", "27_golden_and_pages", "35_blackbox.csv")
"""Cases with different promised tiers."""
MORE = pytest.mark.slow("breadth: another file's promises")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in PROMISES else MORE) for name in EXPECTED if name not in REFUSED]
)
def test_promised_tiers_are_measured(name: str, init_reports: Documents) -> None:
    """Check that each promised tier measures the promised cases, and that no other tier does."""
    document = load_case(name, init_reports)
    promised = {ready["tier"] for ready in document["readiness"] if ready["missing"] is None}
    assert promised == check_promises(source_of(name)).keys()


PROVIDER_KEYS = ("numbers.avg_rouge1_f of bot-a", "numbers.avg_rouge1_f of bot-b")


@pytest.mark.parametrize("name", select_cases(*PROVIDER_KEYS, refused=True))
def test_providers_are_selected_with_where(name: str, engine: Engine) -> None:
    case = EXPECTED[name]
    n_answers = 0
    for key, expected in case["numbers"].items():
        if not key.startswith("avg_rouge1_f of "):
            continue
        provider = key.removeprefix("avg_rouge1_f of ")
        source = f"case_11_{provider.replace('-', '_')}"
        ran = run_init(name, "--where", f"provider.label={provider}", "--json", source=source)
        assert ran.code == 0, ran.err
        check_mapping(name, source, ran.json, engine)
        counted = count(engine, source, case)
        n_answers += counted.pop("answers")
        assert counted == {key: case[key] for key in counted}
        check_rouge(evaluate("tier3", source=source, sut="recorded"), expected, case["numbers"]["n_scored"])
        if provider == "bot-a":
            assert count_texts(engine, source) == (6, 6)
    assert n_answers == case["answers"]


@contextmanager
def stub_bot() -> Iterator[str]:
    port = find_free_port()
    process = subprocess.Popen([sys.executable, str(CASES / "stub_bot.py"), str(port)])
    try:
        wait_for("the bot listens", lambda: is_port_open(port))
        yield f"http://127.0.0.1:{port}/ask"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", [name for name, case in EXPECTED.items() if "--sut" in case["command"]])
def test_bot_without_pages_is_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = EXPECTED[name]["numbers"]
    with stub_bot() as address:
        ran = run_init(name, "--sut", address, "--json")
        assert ran.code == 0, ran.err
        ready = {tier["tier"]: tier["questions"] for tier in ran.json["readiness"] if tier["missing"] is None}
        monkeypatch.setenv("YARUS_SUT", address)
        tier = numbers["run"].split()[2]
        summary = evaluate(tier, source=source_of(name))
    assert ready == {tier: numbers["n_scored"]}
    check_rouge(summary, numbers["avg_rouge1_f"], numbers["n_scored"])


@pytest.mark.parametrize("name", select_cases("numbers.hit_rate@1", "numbers.mrr"))
def test_query_document_is_left_out_of_ranking(
    name: str, init_reports: Documents, service: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the service return the query's own document first, and its counterpart second."""
    load_case(name, init_reports)
    lines = (CASES / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]

    def rank(number: int, request: Case) -> bytes:
        own_index = texts.index(request["question"])
        results = [{"id": f"arg-{i}", "distance": distance} for distance, i in enumerate((own_index, own_index ^ 1))]
        return make_response(200, json.dumps({"results": results}), JSON_HEADER)

    service.script = rank
    monkeypatch.setenv("YARUS_RETRIEVER", service.url)
    numbers = EXPECTED[name]["numbers"]
    summary = evaluate(numbers["run"].split()[2], source=source_of(name))
    assert {key: get_value(summary, key) for key in ("hit_rate@1", "mrr")} == {
        key: numbers[key] for key in ("hit_rate@1", "mrr")
    }


def test_tiers_measure_nothing_without_references(init_reports: Documents) -> None:
    """Check that the answer is not compared with itself."""
    name = "25_ragbench.parquet"
    load_case(name, init_reports)
    metrics = evaluate("tier3", source=source_of(name), sut="recorded")["metrics"]
    for metric in (metrics["avg_rouge1_f"], metrics["avg_semantic_similarity"]):
        assert (metric["value"], metric["n_scored"]) == (None, 0)
        assert "no reference" in metric["reason"]


def test_labels_find_pages_loaded_later(init_reports: Documents, engine: Engine) -> None:
    name = "27_golden_and_pages"
    load_case(name, init_reports)
    source = "case_27_in_turn"
    for file in ("golden_set.json", "pages"):
        ran = run_words(["load", "table", f"{name}/{file}"], source, "--json")
        assert ran.code == 0, ran.err
    labels = "SELECT array_agg(relevant_urls ORDER BY question_id) FROM {}.annotation"
    loaded_in_turn = scalar(engine, source, labels)
    assert loaded_in_turn == scalar(engine, source_of(name), labels)
    assert any("://" in page for pages in loaded_in_turn for page in pages)


def test_pages_are_not_mentioned_if_no_passage_has_one(init_reports: Documents) -> None:
    name = "30_one_bad_cell.csv"
    load_case(name, init_reports)
    summary = evaluate("tier3", source=source_of(name))
    assert (summary["production"] or {"page": None})["page"] is None
    assert not [note for note in summary["notes"] if note["note"] == "unknown ids"]


def test_every_key_is_covered_by_a_test() -> None:
    """Find keys that no test selects, and warnings or values without an entry in the tables."""
    assert {key for case in EXPECTED.values() for key in keys_of(case)} == _covered
    with_prose = {
        (number_of(name), key) for name, case in EXPECTED.items() for key in ("trap", "not_lost", "also") if key in case
    }
    assert with_prose - {("38", "trap")} == VALUES.keys()  # case 38 is refused, and must not load anything
    warned = {number_of(name) for name, case in EXPECTED.items() if case.get("warn")}
    assert warned - {"30"} == WARNINGS.keys()
    assert {path.name for path in CASES.iterdir() if path.name[:2].isdigit()} == EXPECTED.keys()
