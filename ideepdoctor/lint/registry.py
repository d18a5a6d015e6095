"""Every check of source."""

from __future__ import annotations

from ideepdoctor.lint.base import Check
from ideepdoctor.lint.idp900 import IDP900
from ideepdoctor.lint.idp901 import IDP901
from ideepdoctor.lint.idp902 import IDP902
from ideepdoctor.lint.idp903 import IDP903
from ideepdoctor.lint.idp904 import IDP904
from ideepdoctor.lint.idp905 import IDP905
from ideepdoctor.lint.idp906 import IDP906
from ideepdoctor.lint.idp907 import IDP907
from ideepdoctor.lint.idp908 import IDP908
from ideepdoctor.lint.idp909 import IDP909
from ideepdoctor.lint.idp910 import IDP910
from ideepdoctor.lint.idp911 import IDP911
from ideepdoctor.lint.idp912 import IDP912
from ideepdoctor.lint.idp913 import IDP913
from ideepdoctor.lint.idp914 import IDP914
from ideepdoctor.lint.idp915 import IDP915
from ideepdoctor.lint.idp916 import IDP916
from ideepdoctor.lint.idp917 import IDP917
from ideepdoctor.lint.idp918 import IDP918

LINT_CHECKS: tuple[type[Check], ...] = (
    IDP900,
    IDP901,
    IDP902,
    IDP903,
    IDP904,
    IDP905,
    IDP906,
    IDP907,
    IDP908,
    IDP909,
    IDP910,
    IDP911,
    IDP912,
    IDP913,
    IDP914,
    IDP915,
    IDP916,
    IDP917,
    IDP918,
)
