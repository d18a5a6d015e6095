"""The search path of a real ideep4py, as a source build has it, mended by the step and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ideepdoctor.model.plan import Plan, SetRpath
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.apply import apply_plan
from ideepdoctor.treatment.elfpaths import read_headers
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import manifest
from ideepdoctor.treatment.undo import undo
from tests.e2e.loader_rows import IMPORT_ERROR, WORKS, Truth, plain, site_packages, truth, with_runpath

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("version", ["3.6", "3.7"])
@pytest.mark.parametrize("libraries", [False, True])
def test_a_source_build_loads_and_computes_with_an_rpath(broken_copy, tmp_path, version, libraries):
    environment = broken_copy(version)
    with_runpath(environment, libraries=libraries)
    package = site_packages(environment) / "ideep4py"
    [binding] = package.glob("_ideep4py*.so")
    [listed] = package.parent.glob("ideep4py-*.dist-info")
    before, state = [manifest(str(folder)) for folder in (package, listed)], str(tmp_path / "state")

    def outcome(**environ: str) -> Truth:
        return truth(plain(environment / "bin" / "python"), environ, tmp_path)

    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "libiomp5.so").write_bytes(b"")
    elsewhere = {"LD_LIBRARY_PATH": str(empty)}
    assert outcome(**elsewhere).ends == IMPORT_ERROR
    steps = [SetRpath(str(binding), "$ORIGIN/lib", "row 15", binding.stat().st_size)]
    steps += [SetRpath(str(path), "$ORIGIN", "row 15") for path in sorted((package / "lib").iterdir())]
    apply_plan(RealSystem(), Plan("mend", tuple(steps)), state, Quiet())
    for step in steps:
        headers = read_headers(step.path)
        assert (headers.rpaths, headers.runpaths) == ((step.rpath,), ())
    assert manifest(str(listed)) != before[1], "RECORD lists what is there now"
    after = outcome(**elsewhere)
    assert (after.ends, Path(after.used or "").parent) == (WORKS, package / "lib"), after.stderr
    assert outcome().ends == WORKS
    undo(RealSystem(), state, None, force=False, sink=Quiet())
    assert [manifest(str(folder)) for folder in (package, listed)] == before
    assert outcome(**elsewhere).ends == IMPORT_ERROR
