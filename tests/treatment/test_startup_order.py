"""The start-up file brings ideep4py in before torch, on every Python found here; both are played by small packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.treatment.startup import MODULE, module_text, startup_files
from ideepdoctor.treatment.variables import Variable
from tests.treatment.test_startup import CHOSEN, VERSIONS, Environment, made_or_skipped

RECORD = "import sys\nsys.order = getattr(sys, 'order', []) + [__name__]\n"
SHOW = "; import sys, json; print(json.dumps(getattr(sys, 'order', [])))"
BOTH = ["ideep4py", "torch"]


class Ordered(Environment):
    """An environment with a torch and an ideep4py that tell in which order they were imported."""

    def __init__(self, version: str, folder: Path) -> None:
        super().__init__(version, folder)
        self.version = tuple(map(int, version.split(".")))
        self.package("torch", RECORD, nn=RECORD, __main__="import torch" + SHOW + "\n")
        self.package("ideep4py", RECORD)
        self.package("other", RECORD)

    def package(self, name: str, text: str, **modules: str) -> None:
        folder = self.site / name
        folder.mkdir(exist_ok=True)
        for module, source in {"__init__": text, **modules}.items():
            (folder / f"{module}.py").write_text(source)

    def order(self, code: str, *options: str) -> list[str]:
        """What was imported, in its order; nothing may be printed besides."""
        done = self.start(*options, "-c", self.prologue + code + SHOW)
        assert (done.returncode, done.stderr) == (0, "")
        answer = json.loads(done.stdout)
        assert isinstance(answer, list)
        return answer

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        # What is not written cannot be read by the next start, whose sources may be of the same second.
        return subprocess.run(
            [*self.words, "-B", *words],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={},
            timeout=60,
            check=False,
        )


@pytest.fixture(params=VERSIONS)
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Ordered:
    made = made_or_skipped(Ordered, request.param, tmp_path)
    made.install(CHOSEN, ("torch",))
    return made


def test_torch_alone_brings_ideep4py_before_it(environment):
    assert environment.order("import torch") == BOTH
    assert environment.order("import torch.nn") == [*BOTH, "torch.nn"]
    assert environment.order("from torch import nn") == [*BOTH, "torch.nn"]
    assert environment.order("__import__('torch')") == BOTH
    assert environment.order("import torch", "-O", "-s", "-E") == BOTH


def test_without_the_order_torch_comes_alone(environment):
    environment.install(CHOSEN)
    assert environment.order("import torch") == ["torch"]


def test_whoever_is_asked_first_there_is_one_of_each(environment):
    assert environment.order("import ideep4py, torch, torch, ideep4py") == BOTH
    assert environment.order("import torch, ideep4py") == BOTH
    assert environment.order("import other, torch, other") == ["other", *BOTH]
    assert environment.order("import other") == ["other"], "ideep4py comes with torch and not before"
    again = "import torch, sys; del sys.modules['torch'], sys.modules['ideep4py']; import torch"
    assert environment.order(again) == [*BOTH, "torch"], "only the first time"


def test_only_a_top_level_module_is_meant(environment):
    environment.package("other", RECORD, torch=RECORD)
    assert environment.order("import other.torch") == ["other", "other.torch"]
    if environment.version < (3,):
        environment.package("other", "import torch\n" + RECORD, torch=RECORD)
        assert environment.order("import other") == ["other.torch", "other"], "2.7 looks within the package first"


def test_a_start_imports_nothing_and_leaves_one_finder(environment):
    code = "import sys; sys.order = [name for name in ('torch', 'ideep4py', 'warnings') if name in sys.modules] + "
    code += "[sum(type(finder).__name__ == '_Watch' for finder in sys.meta_path)]"
    with_it = environment.order(code)
    environment.install(CHOSEN)
    assert with_it == [*environment.order(code)[:-1], 1]
    # From 3.12 on Chainer needs what the finder gives it.
    assert environment.order(code)[-1] == (environment.version >= (3, 12))


def test_as_a_module_as_a_script_and_without_site(environment):
    if environment.prologue:
        pytest.skip("no environment of its own")
    assert json.loads(environment.start("-m", "torch").stdout) == BOTH
    script = environment.folder / "script.py"
    script.write_text("import torch" + SHOW + "\n")
    assert json.loads(environment.start(str(script)).stdout) == BOTH
    assert environment.order("import torch", "-I") == BOTH
    path = f"import sys; sys.path.append({str(environment.site)!r}); "
    assert environment.order(path + "import torch", "-S") == ["torch"]


@pytest.mark.parametrize(
    "text",
    [
        "raise ImportError('libmkldnn.so.0')",
        "raise RuntimeError('numpy')",
        "raise SystemExit(3)",
        "class Strange(BaseException): pass\nraise Strange()",
        "def",
        "import missing_module",
        "import torch, torch.nn",
        "import warnings; warnings.warn('numpy.ufunc size changed', RuntimeWarning); raise ImportError()",
    ],
)
def test_an_ideep4py_that_cannot_be_imported_stops_nothing(environment, text):
    environment.package("ideep4py", text)
    assert environment.order("import torch")[:1] == ["torch"]


def test_without_an_ideep4py(environment):
    (environment.site / "ideep4py" / "__init__.py").unlink()
    (environment.site / "ideep4py").rmdir()
    assert environment.order("import torch") == ["torch"]
    block = "import sys; sys.modules['ideep4py'] = None; "
    assert environment.order(block + "import torch") == ["torch"]


def test_an_error_of_torch_is_torchs_own(environment):
    environment.package("torch", "raise ValueError('torch is broken')")
    done = environment.start("-c", environment.prologue + "import torch")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ValueError: torch is broken"
    assert MODULE not in done.stderr


def test_a_torch_that_is_not_there_is_not_found(environment):
    for name in ("nn", "__main__", "__init__"):
        (environment.site / "torch" / f"{name}.py").unlink()
    (environment.site / "torch").rmdir()
    done = environment.start("-c", environment.prologue + "import torch")
    assert done.stderr.splitlines()[-1].replace("'", "").endswith("No module named torch")
    assert MODULE not in done.stderr


def test_ctrl_c_is_not_swallowed(environment):
    environment.package("ideep4py", "raise KeyboardInterrupt")
    done = environment.start("-c", environment.prologue + "import torch; print('went on')")
    assert done.returncode != 0
    assert done.stdout == ""


def test_warnings_of_ideep4py_are_not_shown_and_others_are(environment):
    environment.package("ideep4py", "import warnings\nwarnings.warn('of numpy', RuntimeWarning)\n" + RECORD)
    environment.package("torch", "import warnings\nwarnings.warn('of torch', RuntimeWarning)\n" + RECORD)
    done = environment.start("-W", "always", "-c", environment.prologue + "import torch")
    assert "of numpy" not in done.stderr
    assert "of torch" in done.stderr


def test_many_threads_at_once(environment):
    environment.package("ideep4py", "import time\ntime.sleep(0.3)\n" + RECORD)
    environment.package("torch", "import time\ntime.sleep(0.1)\n" + RECORD, nn=RECORD)
    code = (
        "import threading, importlib; "
        "names = ['torch', 'torch.nn', 'ideep4py', 'torch', 'torch.nn', 'other'] * 3; "
        "all_ = [threading.Thread(target=importlib.import_module, args=(name,)) for name in names]; "
        "[one.start() for one in all_]; [one.join() for one in all_]"
    )
    answer = environment.order(code)
    assert sorted(answer) == sorted([*BOTH, "torch.nn", "other"])
    assert [name for name in answer if name in BOTH] == BOTH


def test_a_torch_that_waits_for_an_ideep4py_of_another_thread(environment):
    """It is in sys.modules long before it is whole."""
    environment.package("ideep4py", "import time\ntime.sleep(0.4)\n" + RECORD)
    code = (
        "import threading, importlib, time; "
        "one = threading.Thread(target=importlib.import_module, args=('ideep4py',)); one.start(); time.sleep(0.15); "
        "importlib.import_module('torch'); one.join()"
    )
    assert environment.order(code) == BOTH


def test_several_packages_each_once(environment):
    environment.install(CHOSEN, ("torch", "other"))
    assert environment.order("import other, torch") == ["ideep4py", "other", "torch"]


def test_the_finders_after_it_are_all_asked(environment):
    """A list that got shorter while it is walked would skip one."""
    if environment.version < (3,):
        pytest.skip("finders have another protocol")
    code = (
        "import sys; "
        "ask = type('Ask', (), {'find_spec': lambda self, name, path=None, target=None: asked.append(name)}); "
        "asked = []; sys.meta_path.insert(1, ask()); import torch; assert 'torch' in asked"
    )
    assert environment.order(code) == BOTH


def test_variables_that_cannot_be_set_do_not_lose_the_order(environment):
    module = environment.site / f"{MODULE}.py"
    module.write_text(module.read_text().replace("def _apply(environ):", "def _apply(environ):\n    1 // 0"))
    assert environment.order("import torch") == BOTH


def test_an_import_while_the_program_ends(environment):
    """As it would be without the order; 2.7 has emptied modules by then."""
    code = (
        "import sys\n"
        "class Last(object):\n"
        "    def __del__(self, load=__import__, say=sys.stderr.write, kind=type):\n"
        "        try:\n"
        "            load('torch')\n"
        "        except BaseException as error:\n"
        "            say(kind(error).__name__)\n"
        "%s = Last()"
    )
    for place in ("last", "sys.last"):
        with_it = environment.start("-c", environment.prologue + code % place)
        environment.install(CHOSEN)
        without = environment.start("-c", environment.prologue + code % place)
        assert (with_it.returncode, with_it.stderr) == (without.returncode, without.stderr)
        environment.install(CHOSEN, ("torch",))


def test_the_text_without_an_order_has_none():
    assert "\nFIRST = ()\n" in module_text(CHOSEN)
    assert module_text(CHOSEN, ("torch", "other")).count("\nFIRST = ('torch', 'other')\n") == 1


def test_the_plan_says_what_the_file_does():
    variable = Variable("CHAINER_USE_IDEEP", "auto", "why")
    whys = [startup_files(given, "/site", first)[0].why for given in ((), (variable,)) for first in ((), ("torch",))]
    assert whys == [
        "sets nothing",
        "imports ideep4py before torch",
        "sets CHAINER_USE_IDEEP where you have not",
        "sets CHAINER_USE_IDEEP where you have not; imports ideep4py before torch",
    ]


@pytest.mark.parametrize("bad", ["a.b", "a b", "'", "", "\u00e9"])
def test_what_is_no_top_level_module_is_refused(bad):
    with pytest.raises(ValueError, match="no start-up file"):
        startup_files((), "/site", (bad,))


def test_the_finder_answers_nothing_in_the_doctors_own_python():
    scope: dict[str, object] = {}
    exec(module_text((), ("torch",)).replace("sys.meta_path.insert", "(lambda *_: None)"), scope)
    finder = scope["_Watch"](("json",), None, None)  # type: ignore[operator]
    assert finder.find_spec("json") is None
    assert finder.find_module("json") is None
    assert "ideep4py" not in sys.modules
