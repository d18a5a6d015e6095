"""The runner of workflows that the tests use is right in what it keeps to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.recipes.actions import Job
from tests.recipes.expressions import evaluate, substitute

CONTEXTS = {"a": {"yes": True, "no": False, "empty": "", "word": "x-y", "get-python": "conda"}, "github": {"event": {}}}

TELL = 'echo "$OUT $NAME ${PATH%%:*}"; echo s >> $GITHUB_STEP_SUMMARY'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.word == 'X-Y'", True),
        ("a.get-python != 'conda'", False),
        ("a.empty || 'failed'", "failed"),
        ("a.yes && a.word", "x-y"),
        ("!a.no && (a.word == 'q' || a.yes)", True),
        ("github.event.pull_request.head.repo.fork != true", True),
        ("a.missing == ''", True),
        ("'it''s'", "it's"),
        ("hashFiles('x') != ''", True),
    ],
)
def test_expressions(text: str, value: object):
    assert evaluate(text, CONTEXTS, {"hashFiles": lambda pattern: pattern}) == value


@pytest.mark.parametrize("text", ["steps.x", "a.word ==", "a.word b", "fromJSON('1')", "a.word % 2"])
def test_what_is_not_understood_is_an_error(text: str):
    with pytest.raises((ValueError, IndexError)):
        evaluate(text, CONTEXTS)


def test_texts_have_their_expressions_replaced():
    assert substitute("${{ a.word }}-${{ a.no }}${{ a.missing }}.", CONTEXTS) == "x-y-false."


def test_a_job_runs_as_a_runner_would_run_it(tmp_path: Path):
    steps: list[dict[str, Any]] = [
        {"id": "one", "run": "echo out=1 >> $GITHUB_OUTPUT; echo NAME=v >> $GITHUB_ENV; echo /x >> $GITHUB_PATH"},
        {"name": "two", "env": {"OUT": "${{ steps.one.outputs.out }}"}, "run": TELL},
        {"name": "pipe", "shell": "bash", "run": "false | true"},
        {"name": "not run", "run": "echo no"},
        {"name": "always", "if": "${{ always() }}", "run": "echo last"},
        {"name": "failed", "if": "failure() && steps.one.outcome == 'success'", "run": "echo '::error title=x::y'"},
    ]
    (tmp_path / "work").mkdir()
    job = Job(tmp_path / "work", tmp_path / "more", {}).run({"jobs": {"j": {"steps": steps}}}, "j")
    assert [(step.name, step.code) for step in job.done] == [
        *(("run", 0), ("two", 0), ("pipe", 1), ("always", 0), ("failed", 0))
    ]
    assert job.done[1].output == "1 v /x\n" and job.summary == "s\n"
    assert job.failed and job.annotations == ["::error title=x::y"]


def test_an_output_that_is_no_assignment_is_an_error(tmp_path: Path):
    (tmp_path / "work").mkdir()
    job = Job(tmp_path / "work", tmp_path / "more", {})
    with pytest.raises(ValueError, match="NAME=VALUE"):
        job.run({"jobs": {"j": {"steps": [{"run": 'echo "two words" >> "$GITHUB_ENV"'}]}}}, "j")
