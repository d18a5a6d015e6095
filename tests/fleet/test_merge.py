"""``fleet merge``: groups, twins, files, exit codes, formats, memory."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ideepdoctor.commands.fleet_merge import listed, merge
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.names import unfold
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.options import Format
from ideepdoctor.render.formats import renderer
from ideepdoctor.render.json import envelope
from ideepdoctor.render.text import console, render
from ideepdoctor.treatment.progress import Quiet
from tests.benchmarks.fleet_reports import DAMAGED, damage, measured, report, write
from tests.doubles import FakeSystem

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))


def merged(folder: Path, *paths: str) -> Report:
    system = FakeSystem()
    found = merge(Session(system, {}, str(folder), Quiet(), lambda report: False), paths or (".",))
    assert system.calls == []
    jsonschema.validate(envelope(found), SCHEMA)
    return found


def fleet_of(folder: Path, *paths: str) -> Mapping[str, Any]:
    fleet: Mapping[str, Any] = merged(folder, *paths).extra["fleet"]
    return fleet


def plant(folder: Path, kinds: Iterable[str], seed: int = 7) -> None:
    """A host of each kind, on the same machine."""
    random_ = random.Random(seed)
    random_.random = lambda: 0.0  # type: ignore[method-assign]
    for number, kind in enumerate(kinds, 1):
        name = f"n{number:02d}"
        (folder / f"{name}.json").write_text(json.dumps(report(name, kind, random_)))


HEALTHY = ["healthy"] * 10


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("fleet")
    odd = ["old NumPy", "old NumPy", "altered", "altered", "altered", "threads", "slow", "other library", "no AVX-512"]
    plant(folder, [*HEALTHY, *odd, "unreachable", "unreachable", "timeout"])
    for how in DAMAGED:
        (folder / f"x-{how}.json").write_bytes(damage(how))
    return folder


def test_hosts_of_one_cause_are_one_group_whatever_their_folders_and_addresses(planted):
    groups = [(item["count"], item["state"], item["hosts"]) for item in fleet_of(planted)["groups"]]
    assert groups == [
        (14, "healthy", "n[01-10,16-19]"),
        (3, "findings", "n[13-15]"),
        (2, "unreachable", "n[20-21]"),
        (2, "findings", "n[11-12]"),
        (1, "timeout", "n22"),
    ]


def test_causes_are_told_worst_first_with_the_hosts_that_have_them(planted):
    fleet = fleet_of(planted)
    causes = [(item["severity"], item["code"], item["hosts"]) for item in fleet["causes"]]
    assert causes == [
        ("failed", "unreachable", "n[20-21]"),
        ("failed", "timeout", "n22"),
        ("error", "IDP309", "n[13-15]"),
        ("error", "IDP305", "n[11-12]"),
        ("info", "IDP113", "n19"),
    ]
    altered = fleet["causes"][2]
    assert altered["example"] == "n13" and altered["variants"] > 1
    assert fleet["causes"][3]["variants"] == 1


def test_the_odd_hosts_are_named_with_all_that_they_differ_in(planted):
    found = {
        item["hosts"]: {row["what"]: row["difference"] or row["found"] for row in item["differs"]}
        for item in fleet_of(planted)["outliers"]
    }
    assert found == {
        "n16": {"threads": "4", "variable OMP_NUM_THREADS": "4"},
        "n18": {"MKL-DNN": "MKL-DNN 0.14, ideep4py's own, build ffff00001111"},
        "n19": {"instructions": found["n19"]["instructions"], "kernel of the convolution": "jit:avx2"},
        "n[11-12]": {"NumPy": "1.15.4"},
    }
    assert re.fullmatch(r"lacks avx512_\S+( avx512\S+)+", found["n19"]["instructions"])


def test_the_slow_host_is_named_with_the_number_that_says_so(planted):
    [slow] = [item for item in fleet_of(planted)["slower"] if item["unit"] == "GFLOP/s"]
    assert slow["host"] == "n17"
    assert slow["value"] < slow["limit"] < slow["median"]
    assert slow["limit"] == pytest.approx(slow["median"] - max(3.5 * 1.4826 * slow["mad"], 0.1 * slow["median"]))
    assert slow["twins"] == 17
    assert slow["differs_in"] == []


def test_every_format_has_the_hosts_without_an_answer(planted):
    found = merged(planted)
    for form in Format:
        if form is not Format.TEXT:
            text = renderer(form)(found, FailOn.ERROR)
            assert "n[20-21]" in text.replace("<wbr>", ""), form
            assert "IDP309" in text, form
            assert re.search(r"x-cut.*is cut off", text, re.DOTALL), form


def printed(found: Report, *, details: bool) -> str:
    stream = StringIO()
    to = console(file=stream)
    to.width = 80
    render(found, to, details=details)
    return stream.getvalue()


@pytest.mark.parametrize("details", [False, True])
def test_the_text_has_80_columns_and_no_colour_in_a_file(planted, details):
    text = printed(merged(planted), details=details)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "14 healthy, 5 with findings, 1 timed out, 2 unreachable" in " ".join(text.split())
    assert text.splitlines()[-1].startswith("2 kinds of error, ")


def test_long_lists_are_cut_in_text_and_whole_with_details(tmp_path):
    plant(tmp_path, ["healthy" if number % 2 else "old NumPy" for number in range(200)])
    found = merged(tmp_path)
    assert "... (-v, or --format json, has them all)" in printed(found, details=False)
    assert "..." not in printed(found, details=True)


def test_a_sentence_has_room_for_some_hosts():
    assert listed("n[1-3]") == "n[1-3]"
    folded = ",".join(f"host-{letter * 8}" for letter in "abcdefghijklmnop")
    assert listed(folded).endswith(",...") and len(listed(folded)) <= 164


@pytest.mark.parametrize(
    ("kinds", "damaged", "fail_on", "code"),
    [
        (["healthy"] * 3, (), "error", 0),
        (["healthy"] * 3, ("cut",), "error", 3),
        (["healthy"] * 3, ("cut",), "never", 0),
        (["healthy", "unreachable"], (), "error", 3),
        (["timeout"], (), "error", 3),
        (["failed"], (), "error", 3),
        (["unreachable"], (), "never", 0),
        (["healthy", "old NumPy", "unreachable"], ("cut",), "error", 1),
        (["healthy", "old NumPy"], (), "never", 0),
        (["healthy"] * 5 + ["threads"], (), "error", 0),
        (["healthy"] * 5 + ["threads"], (), "warning", 1),
        ([], ("empty", "nan"), "error", 3),
    ],
)
def test_the_exit_code_says_what_it_comes_to(tmp_path, kinds, damaged, fail_on, code):
    plant(tmp_path, kinds)
    for how in damaged:
        (tmp_path / f"x{how}.json").write_bytes(damage(how))
    assert summarize(merged(tmp_path), FailOn(fail_on)).exit_code == code


@pytest.mark.parametrize(("newer", "older"), [("a", "z"), ("z", "a")])
def test_of_two_reports_of_a_host_the_newer_counts_and_the_older_is_named(tmp_path, newer, older):
    random_ = random.Random(1)
    for day, kind, file in ((2, "healthy", newer), (1, "old NumPy", older)):
        document = report("n1", kind, random_)
        for part in ("facts", "target"):
            document[part]["collected_at"] = f"2026-11-0{day}T00:00:00Z"
        (tmp_path / f"{file}.json").write_text(json.dumps(document))
    fleet = fleet_of(tmp_path)
    assert fleet["hosts"]["healthy"] == fleet["hosts"]["total"] == 1
    [row] = fleet["older"]
    assert row == {"host": "n1", "file": f"{older}.json", "at": "2026-11-01T00:00:00Z", "instead": f"{newer}.json"}
    assert fleet["causes"] == []


def test_a_file_that_is_named_twice_is_one_file(tmp_path):
    plant(tmp_path, ["healthy"])
    (tmp_path / "link.json").symlink_to(tmp_path / "n01.json")
    fleet = fleet_of(tmp_path, "n01.json", ".", str(tmp_path / "n01.json"))
    assert fleet["files"] == {"read": 1, "counted": 1, "older": 0, "skipped": 0}


def test_nothing_to_read_is_an_error_and_so_is_a_list_that_is_none(tmp_path):
    (tmp_path / "long").write_bytes(b"x" * 200_000)
    for path in (".", "@nowhere", "@long"):
        with pytest.raises(UsageError) as caught:
            merged(tmp_path, path)
        assert caught.value.hint


KINDS = ("healthy", "never", "old NumPy", "threads", "slow", "unreachable", "older", *DAMAGED, "gone")


def fill(folder: Path, kinds: list[str]) -> list[str]:
    """Files of these kinds; returns their names."""
    random_ = random.Random(len(kinds))
    names = []
    for number, kind in enumerate(kinds):
        name = f"f{number}.json"
        names.append(name)
        if kind == "gone":
            continue
        if kind in DAMAGED:
            (folder / name).write_bytes(damage(kind))
        else:
            host = "h0" if kind == "older" else f"h{number}"
            made = report(host, "healthy" if kind == "older" else kind, random_)
            (folder / name).write_text(json.dumps(made))
            os.utime(folder / name, (1_700_000_000 + number, 1_700_000_000 + number))
    return names


@settings(max_examples=8, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=14), st.randoms(use_true_random=False))
def test_each_file_is_counted_or_older_or_skipped_and_their_order_does_not_matter(kinds, random_):
    with tempfile.TemporaryDirectory() as name:
        names = fill(Path(name), kinds)
        fleet = fleet_of(Path(name), *names)
        random_.shuffle(names)
        assert fleet_of(Path(name), *names) == fleet
    older = [item["file"] for item in fleet["older"]]
    skipped = [item["file"] for item in fleet["skipped"]]
    assert len({*older, *skipped}) == len(older) + len(skipped)
    assert sorted(skipped) == sorted(f"f{n}.json" for n, kind in enumerate(kinds) if kind in DAMAGED or kind == "gone")
    counted = [host for group in fleet["groups"] for host in unfold(group["hosts"])]
    assert len(counted) == len(set(counted)) == fleet["hosts"]["total"] == fleet["files"]["counted"]
    assert len(counted) + len(older) + len(skipped) == len(kinds) == fleet["files"]["read"]
    assert fleet["hosts"]["total"] == sum(fleet["hosts"].values()) - fleet["hosts"]["total"]


def test_names_come_on_standard_input_too(planted):
    names = "\0".join(sorted(str(path) for path in planted.glob("n0*.json")))
    done = subprocess.run(
        [sys.executable, "-m", "ideepdoctor", "fleet", "merge", "-", "--format", "json"],
        input=names,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["fleet"]["groups"][0]["hosts"] == "n[01-09]"


def test_memory_does_not_grow_with_the_reports(tmp_path):
    """Six times as many reports, 30 MB more of JSON: kept, they would take 100 MB."""
    peaks = []
    for count in (120, 720):
        write(tmp_path / str(count), count)
        _seconds, peak, code = measured(tmp_path / str(count), "-o", str(tmp_path / "out"))
        assert code == 1
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 10
