"""Seeing the import of Chainer, and telling something once.

A part (see ``payload_source``) of the files that are loaded in a user's program: nothing here may stop that.
"""

import sys


def tell_once(told, name, key, level, text):
    """Send a line to a logger, once for each key in the set ``told``; information is printed only if one listens."""
    if key in told:
        return
    told.add(key)
    try:
        import logging

        logger = logging.getLogger(name)
        if sys.version_info[0] == 2 and level >= 30 and not (logger.handlers or logging.root.handlers):
            # As Python 3 does. Python 2 would only say that it found no handlers.
            sys.stderr.write(text + "\n")
        else:
            logger.log(level, text)
    except Exception:
        pass


class ChainerLoader(object):
    """Loads chainer with its own loader, and calls ``then`` with it when that is done."""

    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def exec_module(self, module):
        # Nobody meets this object later: data files of the package are looked up through its loader.
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.then(module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class ChainerFinder(object):
    """Sees the import of chainer on sys.meta_path, and calls ``then`` with it; finds nothing else."""

    def __init__(self, then):
        self.busy, self.then = False, then

    def find_spec(self, name, path=None, target=None):
        if name != "chainer" or self.busy:
            return None
        self.busy = True
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find and finder is not self else None
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = ChainerLoader(spec.loader, self.then)
                    return spec
        finally:
            self.busy = False
        return None

    # Python 2.7. A reload needs nothing.
    def find_module(self, name, path=None):
        if name == "chainer" and not self.busy and sys.version_info[0] == 2 and name not in sys.modules:
            return self
        return None

    def load_module(self, name):
        self.busy = True
        try:
            __import__(name)
        finally:
            self.busy = False
        self.then(sys.modules[name])
        return sys.modules[name]
