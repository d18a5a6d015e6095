"""ideepdoctor: installs and examines Chainer with Intel iDeep (ideep4py) on CPUs."""

__version__ = "0.1.0"
__date__ = "2026-11-30"
"""When this version was made, for the manual page."""
