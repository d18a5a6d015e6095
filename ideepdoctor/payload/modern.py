"""What Chainer 7.8.1 asks NumPy for and Python 3.12 and later no longer have: a part (see ``payload_source``).

Chainer's check of its surroundings imports numpy.distutils.system_info, whose get_info() it calls on macOS alone, and
as_strided reads numpy.sctypes, which NumPy 2 has removed. Both are offered while Chainer is being imported, and only
where they are really missing: a program without Chainer sees nothing of this.
"""

import sys


class _Empty(object):
    """The loader of a module that stands for one that is gone."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__doc__ = "Stands for what this NumPy does not have; written by ideepdoctor for the import of Chainer."
        if module.__name__.endswith(".system_info"):
            # As NumPy's own answers where it finds no library of that name.
            module.get_info = lambda name, notfound_action=0: {}


def _distutils(fullname, path):
    """The spec of numpy.distutils or its system_info, if Chainer is being imported and they are missing; else None."""
    chainer = sys.modules.get("chainer")
    if not getattr(getattr(chainer, "__spec__", None), "_initializing", False):
        return None
    from importlib.machinery import ModuleSpec, PathFinder  # novm: from Python 3.12 on

    if PathFinder.find_spec(fullname, path) is not None:
        return None
    return ModuleSpec(fullname, _Empty(), is_package=fullname == "numpy.distutils")


def _types(fullname, path):
    """Give NumPy 2 the table of its types by kind that NumPy 1 has; finds nothing."""
    try:
        import numpy

        if int(numpy.__version__.split(".")[0]) >= 2 and "sctypes" not in vars(numpy):
            numpy.sctypes = _table(numpy)
    except Exception:  # Chainer's own import says what is wrong
        pass
    return None


def _table(numpy):
    table = {"others": [bool, object, bytes, str, numpy.void]}
    for kind, codes in (("int", "bhilq"), ("uint", "BHILQ"), ("float", "efdg"), ("complex", "FDG")):
        # Of two types of one size, long and long long, the first counts.
        sizes = dict((numpy.dtype(code).itemsize, numpy.dtype(code).type) for code in reversed(codes))
        table[kind] = [sizes[size] for size in sorted(sizes)]
    return table


# Modules whose import somebody has to see, and what finds them.
MODERN_NAMES = {
    "numpy.distutils": _distutils,
    "numpy.distutils.system_info": _distutils,
    "chainer.functions.array.as_strided": _types,
}
