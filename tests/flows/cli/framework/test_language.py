"""Check that commands print in one language: that of YARUS_LANGUAGE, else of the locale."""

import re
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from tests.support.command_line import CLOSED, ENGLISH, CommandLine, run_here
from tests.support.texts.messages import commands
from yarus.__main__ import cli
from yarus.db.tables import source
from yarus.flows.cli.framework.language import get_language
from yarus.tasks.config.language import LOCALE_VARIABLES
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.identity import judge_identity, measurement_settings
from yarus.tasks.models.prompts import read_prompts

NAMES = """
    agreement all answer answerable api auto baseline before bge bike bpref browser chunk chunkid chunks
    computed confirmed context contexts contradicted cosine counterfactual coverage csv dask default dense
    description dis display distractors docs document embedder embedding en english env euclidean event extractive
    false filled first free fulltext generator given gold group http https hybrid id ids injection insert json
    jsonl judge label langfuse last layout length lexical llm local lower markdown middle module mrr multi multilingual
    nightly none ok openai otlp page pageid pages paraphrase parquet pgvector pip place previous production
    project query question questions ragas rank recorded refusal release removed rerank response retrieve
    retriever ru runs russian sample schedule score sentence similarity single small status stderr stdout stored sut
    text tier title topic transformers true turn type typos unanswerable uni unit unlabelled url ux vectors
    xlsx yarus yo
"""
"""English words that are kept in Russian texts: names of settings, values, parameters, formats and programs."""


def find_english_words(text: str) -> set[str]:
    """Return the English words of a Russian text, except names, quotations and examples."""
    invoked = r"(?m)^\s+yarus .*$|\byarus(?: [A-Za-z-]+)*"
    text = re.sub(rf"{invoked}|'[^'\n]*'|`[^`]*`|\S*[/_=@#]\S*|--?[\w-]+|\b\w+[.:-]\w\S*", " ", text)
    return set(re.findall(r"\b[a-z]{2,}\b", text)) - set(NAMES.split())


def remove_source_names(text: str, engine: Engine) -> str:
    """Return a text without the names of the sources that other tests left."""
    with engine.connect() as connection:
        names = sorted(connection.scalars(select(source.c.name)), key=len, reverse=True)
    return re.sub(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b", "", text) if names else text


def list_helps() -> list[tuple[str, ...]]:
    """Return the arguments of every command's help, and of every tier's."""
    from yarus.tasks.config.flow_parameters import FLOWS

    tiers = [("run", tier) for tier in FLOWS if tier not in ("sweep", "robustness")]
    return [*(words for words, _ in commands(cli)), *tiers]


@pytest.mark.parametrize("words", list_helps(), ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "--help-all"])
def test_help_is_in_one_language(words: tuple[str, ...], option: str) -> None:
    russian, english = (run_here(*words, option, env=env) for env in ({"YARUS_LANGUAGE": "ru"}, ENGLISH))
    assert (russian.code, english.code, russian.err, english.err) == (0, 0, "", "")
    names = {word for _, command in commands(cli) for word in (command.name or "").split("-")}
    assert find_english_words(russian.out) - names == set()
    assert re.search("[а-яё]", russian.out)
    assert not re.search("[а-яё]", english.out.replace("question=Вопрос", "").replace("е for ё", ""))


def test_refusal_does_not_change_help_language() -> None:
    for env, help_line in (({"YARUS_LANGUAGE": "ru"}, "Показать эту справку"), (ENGLISH, "Show this message")) * 2:
        assert run_here("admin", "prune", "--no-such-option", env=env).code == 2
        assert help_line in run_here("admin", "prune", "--help", env=env).out


def test_overview_sentences_are_not_cut() -> None:
    for env in ({"YARUS_LANGUAGE": "ru"}, ENGLISH):
        overview = " ".join(run_here("--help-all", env=env).out.split())
        assert "..." not in overview.replace("[АРГУМЕНТЫ]...", "").replace("[ARGS]...", "")
        for name, command in cli.commands.items():
            assert f" {name} " in overview
            sentence = " ".join((command.help or "").split("\n\n")[0].split())
            assert env != ENGLISH or sentence in overview


@pytest.mark.parametrize("tier", ["tier0", "tier1", "tier2", "tier3", "real_users", "judge", "ux", "nightly"])
def test_tier_help_shows_parameters_with_defaults(tier: str) -> None:
    """Check that each parameter has its description and default, as in the form."""
    from yarus.tasks.config.flow_parameters import FLOWS

    help_text = " ".join(run_here("run", tier, "--help-all", env=ENGLISH).out.split())
    for name, field in FLOWS[tier].model_fields.items():
        position = help_text.index(f" --{name.replace('_', '-')} ")
        assert " ".join((field.description or "").split()) in help_text[position:], name
        if isinstance(field.default, int | float | str):
            default = str(field.default).lower() if isinstance(field.default, bool) else field.default
            assert f"[default: {default}]" in help_text[position:], name


def test_run_help_lists_tiers() -> None:
    help_text = run_here("run", "--help", env={"YARUS_LANGUAGE": "ru"}).out
    for tier in ("tier0", "tier1", "tier2", "tier3", "real_users", "judge", "judge_pipeline", "ux", "nightly"):
        assert re.search(rf"(?m)^\s+{tier}\s+[А-Я]", help_text), tier


WRONG: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "no such command": (("rnu",), {}),
    "no such option": (("runs", "--limitt", "3"), {}),
    "no such tier": (("run", "tier11"), {}),
    "no tier": (("run",), {}),
    "no such parameter": (("run", "tier1", "--limitt", "5"), {}),
    "no number": (("run", "tier1", "--k", "ten"), {}),
    "too small": (("run", "tier1", "--k", "3"), {}),
    "none of them": (("run", "tier1", "--unit", "word"), {}),
    "a value of click's": (("runs", "--limit", "many"), {}),
    "an option without its value": (("runs", "--limit"), {}),
    "no such evaluation": (("show", "nothing"), {}),
    "no such source": (("run", "tier1", "--source", "nowhere"), {}),
    "no such metric": (("trend", "NDCG"), {}),
    "no such setting": (("runs",), {"YARUS_RETREIVER": "x"}),
    "a setting out of range": (("runs",), {"YARUS_MIN_COVERAGE": "95"}),
    "no such file": (("load", "squad", "absent.json"), {}),
    "no database": (("runs",), {"YARUS_DATABASE_URL": CLOSED}),
    "no production": (("run", "tier1", "--source", "production"), {}),
    "what excludes each other": (("load", "postgres", "x", "--since", "2026-01-01", "--incremental"), {}),
}
LIBRARY_MESSAGES = re.compile(r"connection failed.*|connection to server.*", re.DOTALL)
"""Messages of PostgreSQL's client library, in its own language."""


@pytest.mark.parametrize("name", WRONG)
def test_error_is_in_one_language(at_home: Path, engine: Engine, name: str) -> None:
    words, env = WRONG[name]
    russian, english = (run_here(*words, env=env | {"YARUS_LANGUAGE": chosen}) for chosen in ("ru", "en"))
    assert russian.code == english.code != 0
    assert find_english_words(remove_source_names(LIBRARY_MESSAGES.sub("", russian.err), engine)) == set(), russian.err
    assert re.search("[а-яё]", russian.err)
    assert not re.search("[а-яё]", english.err)


LOCALES: dict[str, tuple[dict[str, str], str]] = {
    "Russian": ({"LANG": "ru_RU.UTF-8"}, "ru"),
    "English": ({"LANG": "en_US.UTF-8"}, "en"),
    "another": ({"LANG": "de_DE.UTF-8"}, "en"),
    "none": ({}, "en"),
    "LC_MESSAGES before LANG": ({"LC_MESSAGES": "ru_RU", "LANG": "en_US.UTF-8"}, "ru"),
    "LC_ALL before LC_MESSAGES": ({"LC_ALL": "C", "LC_MESSAGES": "ru_RU.UTF-8"}, "en"),
    "an empty variable is not set": ({"LC_ALL": "", "LANG": "ru_RU.UTF-8"}, "ru"),
    "YARUS_LANGUAGE before the locale": ({"YARUS_LANGUAGE": "en", "LC_ALL": "ru_RU.UTF-8"}, "en"),
    "an empty YARUS_LANGUAGE is not set": ({"YARUS_LANGUAGE": "", "LC_ALL": "ru_RU.UTF-8"}, "ru"),
}
REFUSALS = {
    "ru": "yarus: нет уровня 'tier11'; возможно, это 'tier1'?\n",
    "en": "yarus: no tier 'tier11'; did you mean 'tier1'?\n",
}


def set_locale(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name in LOCALE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("name", LOCALES)
def test_language_follows_locale(at_home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    variables, language = LOCALES[name]
    set_locale(monkeypatch, variables)
    assert (get_language(), get_settings().language) == (language, language)
    assert run_here("run", "tier11").err == REFUSALS[language]


def test_env_file_sets_language(at_home: Path) -> None:
    (at_home / ".env").write_text("YARUS_LANGUAGE=en\n", encoding="utf-8")
    try:
        assert run_here("run", "tier11").err == REFUSALS["en"]
        assert run_here("run", "--help").out.startswith("Usage: yarus run [OPTIONS] TIER")
    finally:
        (at_home / ".env").unlink()


@pytest.mark.parametrize(("chosen", "expected"), [(None, "ru"), ("", "ru"), ("en", "en"), ("ru", "ru")])
def test_locale_does_not_change_prompts_or_stored_settings(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, chosen: str | None, expected: str
) -> None:
    """A home of before has no YARUS_LANGUAGE: its prompts, and what decides about resuming, stay Russian."""
    prompt_digests, stored = [], []
    for locale in ("ru_RU.UTF-8", "en_US.UTF-8", "C"):
        set_locale(monkeypatch, {"LANG": locale} if chosen is None else {"LANG": locale, "YARUS_LANGUAGE": chosen})
        settings = get_settings()
        prompt_digests.append({name: prompt.digest for name, prompt in read_prompts(settings).items()})
        stored.append(measurement_settings(settings.public()))
    in_expected = read_prompts(get_settings().model_copy(update={"language": expected}))
    assert prompt_digests == [{name: prompt.digest for name, prompt in in_expected.items()}] * 3
    assert [values["language"] for values in stored] == [expected] * 3
    assert stored[0] == stored[1] == stored[2]
    wording = judge_identity(Tier2(), expected, ["faithfulness"])["prompts"]
    assert wording == {"faithfulness": prompt_digests[0]["faithfulness"]}


@pytest.fixture(scope="module")
def database(engine: Engine) -> dict[str, str]:
    """Create a database for this file, because other tests leave texts in any language."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE DATABASE of_language")
    return {"YARUS_DATABASE_URL": engine.url.set(database="of_language").render_as_string(hide_password=False)}


@pytest.fixture(scope="module")
def evaluated(yarus: CommandLine, database: dict[str, str]) -> str:
    """Evaluate a part of the sample with PostgreSQL's text search, as the database's only evaluation."""
    ran = yarus(
        "run", "tier1", "--source", "sample", "--retriever", "fulltext", "--limit", "40", "--json", env=database
    )
    return str(ran.json["evaluation_id"])


@pytest.mark.slow("breadth: every list of an evaluation in both languages")
@pytest.mark.parametrize("words", [("doctor",), ("runs",), ("cases", "{id}", "--limit", "3"), ("show", "{id}")])
def test_lists_are_in_one_language(
    at_home: Path, database: dict[str, str], evaluated: str, words: tuple[str, ...]
) -> None:
    arguments = [word.format(id=evaluated) for word in words]
    russian, english = (run_here(*arguments, env=database | env).out.replace(str(at_home), "") for env in ({}, ENGLISH))
    assert russian and english
    cases = run_here("cases", evaluated, "--limit", "3", "--json", env=database).json
    quoted = {word for case in cases for word in case["question"].split()}
    questions = quoted | {word for line in english.splitlines() if line.startswith("  ") for word in line.split()}
    assert find_english_words("\n".join(line for line in russian.splitlines() if not line.startswith("  "))) == set()
    assert not re.search("[а-яё]", " ".join(set(english.split()) - questions))


@pytest.mark.slow("breadth: every list of an evaluation in both languages")
def test_corpus_is_in_russian(at_home: Path, database: dict[str, str], evaluated: str) -> None:
    """Check Russian only: English topics are also named with words of the questions."""
    result = run_here("corpus", env=database)
    assert (result.code, find_english_words(result.out)) == (0, set())
