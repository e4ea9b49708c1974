"""The doctor on access to the home: no finding is a failure, and each has a command that fixes it."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from yarus.deployments.upkeep.doctor import examine_home
from yarus.deployments.upkeep.doctor_sources import Check


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("YARUS_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "мой дом"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("YARUS_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def apply_fix(finding: Check) -> list[Check]:
    """Return the findings after the command of a finding was run."""
    command = finding.recommended_action.partition(";")[0].partition(", unless")[0]
    subprocess.run(shlex.split(command), check=True)
    return list(examine_home())


def test_missing_home_is_fine(home: Path) -> None:
    home.rmdir()
    [finding] = examine_home()
    assert (finding.exit_code, "is not there yet" in finding.check_result) == (0, True)


def test_closed_home_is_fine(home: Path) -> None:
    assert [finding.check_result for finding in examine_home()] == [f"{home} is closed to other accounts"]


@pytest.mark.parametrize("part", ["", "prefect", "prefect/prefect.db", "pseudonyms.key"])
def test_open_parts_are_found_and_fixed(home: Path, part: str) -> None:
    (home / "prefect").mkdir(mode=0o700)
    for file in ("prefect/prefect.db", "pseudonyms.key"):
        (home / file).touch(0o600)
    (home / part).chmod(0o755)
    [finding] = examine_home()
    assert (finding.exit_code, "is open to other accounts of this machine (0755)" in finding.check_result) == (0, True)
    assert str(home / part) in finding.check_result
    assert [finding.check_result for finding in apply_fix(finding)] == [f"{home} is closed to other accounts"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_home_of_another_user_is_found(home: Path) -> None:
    os.chown(home, 65534, 65534)
    [finding] = examine_home()
    assert "belongs to nobody, and you are root" in finding.check_result


def test_link_to_readable_folder_is_found(home: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (home / "results").symlink_to(shared)
    [finding] = examine_home()
    assert f"is a link to {shared}, which every account can read" in finding.check_result


def test_readable_results_folder_is_found(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Path(f"/tmp/yarus-doctor-{os.getpid()}")  # noqa: S108 - a folder that everybody can enter
    shared.mkdir()
    try:
        shared.chmod(0o755)
        monkeypatch.setenv("YARUS_RESULTS", str(shared))
        _, finding = examine_home()
        assert finding.check_result == f"{shared} can be read by every account of this machine"
        assert len(apply_fix(finding)) == 1
    finally:
        shared.rmdir()


def test_readable_env_file_with_keys_is_found(home: Path, tmp_path: Path) -> None:
    env = tmp_path / ".env"
    env.write_text("YARUS_LANGUAGE=en\n")
    env.chmod(0o644)
    assert len(list(examine_home())) == 1
    env.write_text("YARUS_LANGUAGE=en\nYARUS_JUDGE__API_KEY=s3cret\nYARUS_PRODUCTION_JUDGE__API_KEY=\n")
    _, finding = examine_home()
    assert "holds YARUS_JUDGE__API_KEY" in finding.check_result
    assert "s3cret" not in str(finding)
    assert "YARUS_GATE" not in finding.check_result
    assert len(apply_fix(finding)) == 1
