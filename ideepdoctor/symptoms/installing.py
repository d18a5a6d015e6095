"""The causes of failed installations, as pip and its neighbours tell them."""

from __future__ import annotations

from ideepdoctor.symptoms.base import Cause

_SETUP = "ideepdoctor setup"

NO_WHEEL = Cause(
    ("IDP201", "IDP205"),
    "there is no ideep4py for this Python: wheels exist for 2.7 and 3.5 to 3.7 on Linux, and no source",
    "make an environment with Python 3.7: ideepdoctor setup --get-python conda",
)
NO_SUCH_PIN = Cause(
    ("IDP917", "IDP201"),
    "this release of ideep4py is not on the index (any more): 2.0.0.post3 and 1.0.4 are",
    "write ideep4py==2.0.0.post3 where the version stands",
    "ideepdoctor lint .",
)
INDEX = Cause(
    ("IDP205",),
    "pip's settings or its index stand in the way",
    "look at: pip config list; env | grep -i -E 'pip_|proxy'",
)
PKG_RESOURCES = Cause(
    ("IDP206", "IDP306"),
    "Chainer is built with a setuptools that has no pkg_resources any more (82 and later)",
    "PIP_BUILD_CONSTRAINT=FILE with the line setuptools<81 in FILE (PIP_CONSTRAINT does not reach the build)",
)
NOT_BUILT = Cause(
    ("IDP206", "IDP823"),
    "pip could not begin to build a package; for Chainer: setuptools 82 has no pkg_resources",
    "read the first error below that line; for Chainer PIP_BUILD_CONSTRAINT=FILE with the line setuptools<81",
)
MANAGED = Cause(("IDP202",), "the system's package manager keeps pip out of this Python", _SETUP)
ANOTHER_IDEEP = Cause(
    ("IDP819",),
    "PyTorch's build looks for another ideep, a library of C++ headers; ideep4py has nothing to do with it",
    "build PyTorch with USE_MKLDNN=0, or get its submodules",
)
