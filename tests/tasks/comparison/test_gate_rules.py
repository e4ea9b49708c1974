"""The gate file: its content, and errors for every mistake."""

from pathlib import Path

import pytest

from yarus.db.errors import InputError
from yarus.tasks.comparison.gate_rules import GateRule, read_gate_rules

COMPLETE = """
[baseline]
tier1 = "tier1-20260601-030000-4f2a"

[[rule]]
metric = "hit_rate@1"
floor = 0.6
margin = 0.03

[[rule]]
metric = "retrieval_latency_ms_p95"
ceiling = 200
tier = "tier1"

[[rule]]
metric = "mrr"
stratum = "confirmed"

[[rule]]
metric = "cost_usd"
ceiling = 0.01
"""


def write_gate_file(folder: Path, text: str) -> Path:
    path = folder / "gate.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_read_policy_parses_a_complete_file(tmp_path: Path) -> None:
    policy = read_gate_rules(write_gate_file(tmp_path, COMPLETE))
    assert policy.baselines == {"tier1": "tier1-20260601-030000-4f2a"}
    assert policy.rules == (
        GateRule("hit_rate@1", "floor", 0.6),
        GateRule("hit_rate@1", "no regression", 0.03),
        GateRule("retrieval_latency_ms_p95", "ceiling", 200.0, tier="tier1"),
        GateRule("mrr", "no regression", None, stratum="confirmed"),
        GateRule("cost_usd", "ceiling", 0.01),
    )


def test_read_policy_finds_file_in_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_gate_rules().file is None
    write_gate_file(tmp_path, COMPLETE)
    assert read_gate_rules().file == "gate.toml"


def test_read_policy_defaults_to_headline_regressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rules = read_gate_rules().rules
    assert GateRule("hit_rate@1", "no regression", tier="tier1") in rules
    assert GateRule("avg_e2e_score", "no regression", tier="tier3") in rules
    assert {rule.kind for rule in rules} == {"no regression"}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('metric = "hit_rate@2"', "no metric 'hit_rate@2'; did you mean 'hit_rate@"),
        ('metric = "cost_us"', "no metric 'cost_us'; did you mean 'cost_usd'"),
        ('metric = "mrr"\nflor = 0.5', "no key 'flor'; did you mean 'floor'"),
        ('metric = "mrr"\ntier = "tier_1"', "no tier 'tier_1'; did you mean 'tier1'"),
        ('metric = "mrr"\ntier = "tier2"', "tier2 has no metric 'mrr'"),
        ('metric = "mrr"\nstratum = "confirmd"', "no stratum 'confirmd'; did you mean 'confirmed'"),
        ('metric = "mrr"\ntier = "tier1"\nstratum = "all"', "only real_users has it, not tier1"),
        ('metric = "mrr"\ntier = "tier1"\nstratum = "follow_up"', "only tier3 has it, not tier1"),
        ('metric = "silhouette_score"\nstratum = "all"', "real_users has no metric 'silhouette_score'"),
        ('metric = "mrr"\nfloor = 50', "floor = 50: mrr lies between 0 and 1"),
        ('metric = "mrr"\nfloor = -0.1', "mrr lies between 0 and 1"),
        ('metric = "mrr"\nmargin = 1', "margin = 1: mrr lies between 0 and 1"),
        ('metric = "mrr"\nmargin = -0.1', "margin = -0.1"),
        ('metric = "mrr"\nfloor = nan', "floor = nan: expected a number"),
        ('metric = "mrr"\nfloor = true', "floor = True: expected a number"),
        ('metric = "mrr"\nfloor = "0.5"', "floor = '0.5': expected a number"),
        ('metric = "mrr"\nceiling = 0.5', "mrr is better when it is higher; give a floor"),
        ('metric = "sut_error_rate"\nfloor = 0.1', "sut_error_rate is better when it is lower; give a ceiling"),
        ('metric = "total_texts"', "neither direction is better"),
        ("metric = 5", "metric = 5: expected a name in quotes"),
        ("floor = 0.5", "it names no metric"),
    ],
)
def test_read_policy_locates_wrong_rules(tmp_path: Path, rule: str, message: str) -> None:
    path = write_gate_file(tmp_path, f'[[rule]]\nmetric = "mrr"\nfloor = 0.5\n[[rule]]\n{rule}\n')
    with pytest.raises(InputError) as error:
        read_gate_rules(path)
    assert message in str(error.value)
    assert f"{path}: rule 2:" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected rules, each begun by a line [[rule]]"),
        ('[rule]\nmetric = "mrr"', "expected rules, each begun by a line [[rule]]"),
        ('[[rules]]\nmetric = "mrr"', "no key 'rules'; did you mean 'rule'"),
        ('[baseline]\ntier_1 = "x"\n[[rule]]\nmetric = "mrr"', "no tier 'tier_1'; did you mean 'tier1'"),
        ('baseline = "x"\n[[rule]]\nmetric = "mrr"', "expected [baseline] with lines like"),
        ("[baseline]\ntier1 = 5\n[[rule]]\nmetric = 'mrr'", "expected [baseline] with lines like"),
        ("[[rule]\n", "line 1"),
        pytest.param("a = " + "[" * 100_000, "recursion", id="nested"),
    ],
)
def test_read_policy_names_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    path = write_gate_file(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_gate_rules(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_read_policy_rejects_unreadable_files(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "nothing.toml", tmp_path, binary):
        with pytest.raises(InputError, match="gate file"):
            read_gate_rules(path)
