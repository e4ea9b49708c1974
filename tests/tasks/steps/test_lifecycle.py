"""What is said of an evaluation that is stopped is what the journal has."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete

from yarus.db import journal
from yarus.db.errors import InputError, SourceChanged
from yarus.db.tables import evaluation as table
from yarus.tasks.config.parameters import Tier1
from yarus.tasks.steps.lifecycle import evaluation

LABEL = "ended early"


@pytest.fixture(autouse=True)
def labelled(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SUT_LABEL", LABEL)


async def stopped(engine: Engine, *, finished: bool) -> str:
    """An evaluation that is stopped, perhaps in the moment when its last step has finished it; its id."""
    name = ""
    with pytest.raises(asyncio.CancelledError):
        async with evaluation("tier1", Tier1()) as run:
            name = run.id
            if finished:  # in a thread, which no stop interrupts
                await asyncio.to_thread(journal.close, engine, name, "completed")
            raise asyncio.CancelledError
    return name


@pytest.fixture(autouse=True)
def removed(engine: Engine) -> Iterator[None]:
    """What ends without a file here is no evaluation for others to meet."""
    yield
    with engine.begin() as connection:
        connection.execute(delete(table).where(table.c.sut_label == LABEL))


@pytest.mark.usefixtures("english")
async def test_stopped_it_says_how_to_go_on(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    name = await stopped(engine, finished=False)
    assert journal.find(engine, name)["state"] == "cancelled"
    assert caplog.messages[-1] == f"cancelled; continue with: yarus run tier1 --resume {name}"


@pytest.mark.usefixtures("english")
async def test_stopped_too_late_there_is_nothing_to_resume(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    name = await stopped(engine, finished=True)
    assert journal.find(engine, name)["state"] == "completed"
    assert caplog.messages[-1] == f"cancelled, but it was finished already: yarus show {name}"


async def test_where_the_source_has_changed_it_is_to_be_run_anew(engine: Engine) -> None:
    name = ""
    with pytest.raises(SourceChanged):
        async with evaluation("tier1", Tier1(source="helpdesk")) as run:
            name = run.id
            raise SourceChanged("source 'helpdesk' was loaded anew")
    error = journal.find(engine, name)["error"]
    assert error.endswith("was loaded anew; run it anew: yarus run tier1 --source helpdesk")


async def test_a_mistake_before_anything_is_done_leaves_nothing_to_resume(engine: Engine) -> None:
    name = ""
    with pytest.raises(InputError):
        async with evaluation("tier1", Tier1(source="helpdesk")) as run:
            name = run.id
            raise InputError("no such prompt")
    assert journal.find(engine, name)["error"].endswith(
        "no such prompt; when that is corrected, start it again: yarus run tier1 --source helpdesk"
    )


async def test_after_a_finished_batch_a_mistake_can_be_mended_and_the_rest_done(engine: Engine) -> None:
    name = ""
    with pytest.raises(InputError):
        async with evaluation("tier1", Tier1()) as run:
            name = run.id
            journal.batch_done(engine, name, 0)
            raise InputError("another model")
    assert journal.find(engine, name)["error"].endswith(f"continue with: yarus run tier1 --resume {name}")
