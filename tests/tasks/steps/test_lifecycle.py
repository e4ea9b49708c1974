"""Messages about stopped evaluations agree with the journal."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete

from yarus.db import journal
from yarus.db.errors import InputError, SourceChanged
from yarus.db.tables import evaluation as table
from yarus.tasks.config.parameters import Tier1
from yarus.tasks.steps.lifecycle import open_evaluation

LABEL = "ended early"


@pytest.fixture(autouse=True)
def set_label(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SUT_LABEL", LABEL)


async def stop_evaluation(engine: Engine, *, finished: bool) -> str:
    """Stop an evaluation, optionally just after its last step has finished it, and return its id."""
    name = ""
    with pytest.raises(asyncio.CancelledError):
        async with open_evaluation("tier1", Tier1()) as run:
            name = run.id
            if finished:  # a thread cannot be interrupted by a stop
                await asyncio.to_thread(journal.finish_evaluation, engine, name, "completed")
            raise asyncio.CancelledError
    return name


@pytest.fixture(autouse=True)
def remove_evaluations(engine: Engine) -> Iterator[None]:
    """Delete evaluations without a file, so that other tests do not see them."""
    yield
    with engine.begin() as connection:
        connection.execute(delete(table).where(table.c.sut_label == LABEL))


@pytest.mark.usefixtures("english")
async def test_stop_message_says_how_to_resume(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    name = await stop_evaluation(engine, finished=False)
    assert journal.find_evaluation(engine, name)["state"] == "cancelled"
    assert caplog.messages[-1] == f"cancelled; continue with: yarus run tier1 --resume {name}"


@pytest.mark.usefixtures("english")
async def test_stop_message_when_already_finished(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    name = await stop_evaluation(engine, finished=True)
    assert journal.find_evaluation(engine, name)["state"] == "completed"
    assert caplog.messages[-1] == f"cancelled, but it was finished already: yarus show {name}"


async def test_error_advises_new_run_when_source_changed(engine: Engine) -> None:
    name = ""
    with pytest.raises(SourceChanged):
        async with open_evaluation("tier1", Tier1(source="helpdesk")) as run:
            name = run.id
            raise SourceChanged("source 'helpdesk' was loaded anew")
    error = journal.find_evaluation(engine, name)["error"]
    assert error.endswith("was loaded anew; run it anew: yarus run tier1 --source helpdesk")


async def test_error_advises_new_start_before_first_batch(engine: Engine) -> None:
    name = ""
    with pytest.raises(InputError):
        async with open_evaluation("tier1", Tier1(source="helpdesk")) as run:
            name = run.id
            raise InputError("no such prompt")
    assert journal.find_evaluation(engine, name)["error"].endswith(
        "no such prompt; when that is corrected, start it again: yarus run tier1 --source helpdesk"
    )


async def test_error_advises_resume_after_finished_batch(engine: Engine) -> None:
    name = ""
    with pytest.raises(InputError):
        async with open_evaluation("tier1", Tier1()) as run:
            name = run.id
            journal.record_batch(engine, name, 0)
            raise InputError("another model")
    assert journal.find_evaluation(engine, name)["error"].endswith(f"continue with: yarus run tier1 --resume {name}")
