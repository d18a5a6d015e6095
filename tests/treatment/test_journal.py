"""The journal after crashes: torn lines, files of other versions, several runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ideepdoctor.errors import NeedsAttention, UsageError
from ideepdoctor.model.plan import EditBlock, Plan, WriteFile
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.journal import Journal, history, journal_path, new_id, read, runs, unfinished

PLAN = Plan(
    "title", (WriteFile("/a", "x", "why"), EditBlock("/b", "y", "why"), WriteFile("/a", "z", "why")), ("IDP301",)
)


def begun(state: str, run_id: str = "20200101-000000-000aa") -> Journal:
    journal = Journal(RealSystem(), state, run_id)
    journal.begin(PLAN, "ideepdoctor fix")
    return journal


def test_what_was_noted_is_read(state):
    journal = begun(state)
    journal.note("intent", step=0, note={"existed": True})
    journal.note("done", step=0, note={"sha256": "0"})
    journal.note("intent", step=1, note={"existed": False})
    run = read(state, journal.id)
    assert (run.plan, run.command, run.status) == (PLAN, "ideepdoctor fix", "unfinished")
    assert run.started.endswith("+00:00")
    assert (run.to_reverse, dict(run.results)) == ((1, 0), {0: {"sha256": "0"}})
    assert run.intents[0] == {"existed": True}
    assert run.paths == ("/a", "/b")
    journal.note("reversed", step=1)
    assert read(state, journal.id).to_reverse == (0,)


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([], "unfinished"),
        (["ok"], "ok"),
        (["ok", "undo"], "failed"),
        (["ok", "undo", "undone"], "undone"),
        (["undo"], "failed"),
        (["undo", "rolled-back"], "rolled-back"),
        (["undo", "failed"], "failed"),
        (["undo", "failed", "undo", "undone"], "undone"),
    ],
)
def test_status(state, events, status):
    journal = begun(state)
    for event in events:
        if event == "undo":
            journal.begin_undo()
        else:
            journal.end(event, {"manifest": "/m"} if event == "ok" else {"error": "x"})
    run = read(state, journal.id)
    assert run.status == status
    assert run.ended == ({"manifest": "/m"} if "ok" in events else {}), "only what a whole run left"
    assert (unfinished(state) is not None) == (status in ("unfinished", "failed"))


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_line_does_not_count_and_does_not_swallow_the_next(state, cut):
    journal = begun(state)
    journal.note("intent", step=0, note={"existed": True})
    path = Path(journal_path(state, journal.id))
    whole = path.read_bytes()
    journal.note("intent", step=1, note={"a rather long name of a thing": "that is noted"})
    path.write_bytes(path.read_bytes()[: len(whole) + cut])
    assert read(state, journal.id).to_reverse == (0,)
    journal.note("done", step=0, note={})
    journal.end("ok")
    run = read(state, journal.id)
    assert (run.to_reverse, dict(run.results), run.status) == ((0,), {0: {}}, "ok")


def test_blocks_of_zeros_after_a_power_cut_do_not_count(state):
    journal = begun(state)
    with Path(journal_path(state, journal.id)).open("ab") as stream:
        stream.write(b"\0" * 512)
    journal.end("ok")
    assert read(state, journal.id).status == "ok"


@pytest.mark.parametrize("text", ["", '{"event": "plan-beg', '{"event": "done", "step": 0}\n', "[]\n", "7\n"])
def test_a_journal_without_a_beginning(state, text):
    whole = begun(state)
    whole.end("ok")
    torn = "20990101-000000-000aa"
    Path(journal_path(state, torn)).write_text(text)
    with pytest.raises(NeedsAttention, match="no beginning"):
        read(state, torn)
    assert [run.id for run in runs(state)] == [whole.id]
    assert unfinished(state) is None


def test_a_journal_of_another_version_names_it(state):
    journal = begun(state)
    path = Path(journal_path(state, journal.id))
    data = json.loads(path.read_text())
    data["plan"]["steps"][0]["kind"] = "format-disk"
    data["tool_version"] = "99.1"
    path.write_text(json.dumps(data) + "\n")
    with pytest.raises(NeedsAttention, match=r"another version \(99\.1\)"):
        read(state, journal.id)


@pytest.mark.parametrize("name", ["", "nothing", "../journal/x", "x\0y", "a" * 300])
def test_unknown_names(state, name):
    with pytest.raises(UsageError, match="no run is called") as caught:
        read(state, name)
    assert "nothing was changed yet" in caught.value.hint
    known = begun(state).id
    with pytest.raises(UsageError) as caught:
        read(state, name)
    assert known in caught.value.hint


def test_names_sort_by_age_and_the_newest_comes_first(state):
    names = [begun(state, name).id for name in ("20200101-000000-000aa", "20210101-000000-000aa", new_id())]
    assert [entry.id for entry in history(state)] == names[::-1]
    assert [entry.title for entry in history(state)] == ["title"] * 3
    found = unfinished(state)
    assert found is not None
    assert found.id == names[-1]
