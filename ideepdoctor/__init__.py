"""ideepdoctor: installs and examines Chainer with Intel iDeep (ideep4py) on CPUs."""

__version__ = "0.1.0"
