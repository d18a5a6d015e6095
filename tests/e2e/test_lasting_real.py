"""Memory and forked children for real: a clean install, a function that keeps its inputs, a library that waits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.environments import Answer, doctor

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]

KEEPS = """
try:
    import numpy
    from chainer.functions.activation import relu
except ImportError:
    relu = None
if relu is not None:
    kept, forward = [], relu.ReLU.forward_cpu

    def keeping(self, inputs):
        kept.append(numpy.array(inputs[0]))
        return forward(self, inputs)

    relu.ReLU.forward_cpu = keeping
"""
"""A sitecustomize.py with which every ReLU keeps its input for ever: 64 kB with each step."""

WAITS = """
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
static int team;
static void before(void) {
    int entries = 0;
    DIR *folder = opendir("/proc/self/task");
    while (folder && readdir(folder)) entries++;
    if (folder) closedir(folder);
    team = entries > 3 && dlopen("libmkldnn.so.0", RTLD_NOLOAD | RTLD_LAZY);
}
static void in_child(void) { while (team) pause(); }
__attribute__((constructor)) static void begin(void) { pthread_atfork(before, 0, in_child); }
"""
"""A stand-in for a runtime that waits in a forked child for the threads of its parent: where iDeep has a team."""


def certify(python: Path, ops: str, **environ: str) -> Answer:
    words = ("--python", str(python), "--ops", ops, "--fresh", "--format", "json")
    return doctor("certify", *words, environ=environ)


def test_a_clean_install_leaks_nothing_and_can_be_forked(made: Made) -> None:
    answer = certify(made("3.7")[0], "memory,fork")
    data = answer.document["certify"]
    assert (answer.code, answer.codes()) == (0, []), answer.stdout
    assert answer.codes("info") == ["IDP621"]
    assert data["memory"]["step_bytes"] < data["memory"]["steps"] * 2048
    assert data["memory"]["ideep_bytes"] > 10 * 2**20 > 4 * data["memory"]["numpy_bytes"]
    assert data["fork"]["ok"] is True and data["fork"]["exit_code"] == 0
    assert data["memory"]["shapes"] == 200


def test_a_function_that_keeps_its_inputs_is_a_leak(made: Made, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(KEEPS)
    answer = certify(made("3.7")[0], "memory", PYTHONPATH=str(tmp_path))
    assert (answer.code, answer.codes("error")) == (1, ["IDP620"]), answer.stdout
    assert answer.document["certify"]["memory"]["step_bytes"] > 240 * 50000
    assert "(leak)" in answer.document["verdict"]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.7", "2.7"])
def test_a_child_that_waits_for_threads_that_are_not_there(made: Made, tmp_path: Path, version: str) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (tmp_path / "waits.c").write_text(WAITS)
    library = tmp_path / "libwaits.so"
    words = [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "waits.c"), "-ldl", "-pthread"]
    subprocess.run(words, check=True)
    answer = certify(made(version)[0], "fork", LD_PRELOAD=str(library))
    assert (answer.code, answer.codes()) == (1, ["IDP622"]), answer.stdout
    assert answer.document["certify"]["fork"]["timed_out"] is True
