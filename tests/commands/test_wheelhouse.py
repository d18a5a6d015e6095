"""``wheelhouse``: what is refused before anything is made, and what the check says."""

from __future__ import annotations

import pytest

from ideepdoctor.commands.session import Session
from ideepdoctor.commands.wheelhouse import WheelhouseOptions, wheelhouse
from ideepdoctor.errors import CouldNotCheck, DoctorError, UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from tests.mirror import tiny_wheel


def asked(tmp_path, **options) -> Report:
    environ = {"IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache"), "IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state")}
    session = Session(RealSystem(), environ, str(tmp_path), Quiet(), lambda _report: True)
    return wheelhouse(session, WheelhouseOptions("wh", **options))


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"stack": "chainer9-ideep4py9"}, UsageError, "no stack is called"),
        ({"pythons": ("2.6",)}, UsageError, "not locked for Python 2.6"),
        ({"pythons": ("3.7",), "all_pythons": True}, UsageError, "exclude each other"),
        ({"check": True}, CouldNotCheck, "there is no wheelhouse"),
        ({"index_url": "no url"}, UsageError, "is no URL"),
        ({"archive": "nothing.tar.gz"}, UsageError, "there is no file"),
    ],
)
def test_bad_input_is_one_error_and_leaves_nothing(tmp_path, options, kind, told):
    with pytest.raises(kind, match=told) as caught:
        asked(tmp_path, **options)
    assert isinstance(caught.value, DoctorError)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_manifest_was_never_completed(tmp_path):
    (tmp_path / "wh").mkdir()
    tiny_wheel(tmp_path / "wh")
    with pytest.raises(CouldNotCheck, match=r"no manifest\.json"):
        asked(tmp_path, check=True)
