"""What stands for MKL: which files, where they go, what is refused, what is fetched and when."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.builder import mkl as module
from ideepdoctor.builder import mkl_files, stub
from ideepdoctor.builder.cache import Store
from ideepdoctor.builder.mkl import finish, full_mkl, look, place, provide
from ideepdoctor.builder.recipe import RELEASES
from ideepdoctor.errors import ApplyFailed, BuildFailed, CouldNotCheck, UsageError
from ideepdoctor.model.build import BuildRequest, Layout, Mkl, SourceTree
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.system import Completed, RealSystem
from tests.doubles import completed

RELEASE = RELEASES["2.0.0.post3"]
HEADERS = ("mkl_cblas.h", "mkl_vsl.h", "mkl_vml_functions.h", "fftw/fftw.h")


def files_under(folder: Path | str) -> list[str]:
    top = Path(folder)
    return sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file())


def silent(_text: str) -> None:
    pass


@pytest.fixture
def wheel(tmp_path: Path) -> Mkl:
    """Files as they come of wheels."""
    kept = tmp_path / "kept"
    for name in HEADERS:
        (kept / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / "include" / name).write_text(name)
    for name in mkl_files.LIBRARIES:
        (kept / name).write_text(f"the wheel's {name}")
    return Mkl("wheel", str(kept / "include"), tuple(f"{kept}/{name}" for name in mkl_files.LIBRARIES), "1")


@pytest.fixture
def none(wheel: Mkl, tmp_path: Path) -> Mkl:
    library = tmp_path / "made" / stub.LIBRARY
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF" + stub.MARK.encode())
    return Mkl("none", wheel.include, (str(library),), "2")


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    (tmp_path / "tree" / "mkl-dnn").mkdir(parents=True)
    top = f"{tmp_path}/tree"
    return SourceTree(top, "8" * 40, f"{top}/mkl-dnn", "c" * 40, Layout.CMAKE, "2.0.0.post3", "2.0.0.post3")


# --------------------------------------------------------------------------------------------------------- the pins


def test_every_release_has_its_files() -> None:
    pins = mkl_files.pins()
    for release in RELEASES.values():
        libraries = pins["libraries"][release.wheel]
        assert set(mkl_files.LIBRARIES) < set(libraries)
        assert len(mkl_files.wheel_digest(release.wheel, libraries["python"])) == 64
        assert pins["headers"][release.mkl_include]["wheel"].startswith("125888c9d8f7")


def test_a_wheel_that_no_stack_has_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"9\.9 for Python 3\.7"):
        mkl_files.wheel_digest("9.9", "3.7")


# -------------------------------------------------------------------------------------------------- where files go


def test_mkl_goes_where_upstream_looks(wheel: Mkl, tree: SourceTree) -> None:
    old = Path(tree.mkldnn_folder, "external", "mklml_lnx_2017", "lib")
    old.mkdir(parents=True)
    (old / "libmklml_intel.so").write_text("of another build")
    place(RealSystem(), wheel, tree, RELEASE)
    external = Path(tree.mkldnn_folder, "external")
    name = "mklml_lnx_2018.0.3.20180406"
    assert files_under(external) == sorted(
        [*(f"{name}/include/{header}" for header in HEADERS), *(f"{name}/lib/{lib}" for lib in mkl_files.LIBRARIES)]
    )
    assert (external / name / "lib" / "libiomp5.so").read_text() == "the wheel's libiomp5.so"


def test_the_folder_of_1_0_3_has_another_name(wheel: Mkl, tree: SourceTree) -> None:
    place(RealSystem(), wheel, tree, RELEASES["1.0.3"])
    assert [path.name for path in Path(tree.mkldnn_folder, "external").iterdir()] == ["mklml_lnx_2018.0.1.20171227"]


def test_without_mkl_the_folder_is_there_and_empty(none: Mkl, tree: SourceTree) -> None:
    for _ in range(2):
        place(RealSystem(), none, tree, RELEASE)
        assert list(Path(tree.mkldnn_folder, "external").iterdir()) == []


def test_what_upstreams_install_leaves_out_is_added(none: Mkl, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    (prefix / "lib").mkdir(parents=True)
    (prefix / "lib" / "libmkldnn.so.0").write_text("MKL-DNN")
    for _ in range(2):  # a build that goes on after an interruption finds what it left
        finish(RealSystem(), none, str(prefix))
        assert files_under(prefix) == sorted(
            [*(f"include/mklml/{name}" for name in HEADERS), "lib/libmkldnn.so.0", "lib/libmklml_intel.so"]
        )
    assert stub.MARK.encode() in (prefix / "lib" / "libmklml_intel.so").read_bytes()


def test_the_old_layout_has_its_headers_beside_mkl_dnns(none: Mkl, tmp_path: Path) -> None:
    finish(RealSystem(), none, str(tmp_path / "prefix"), Layout.PREPARE)
    assert "include/mkl_vsl.h" in files_under(tmp_path / "prefix")


def test_what_upstream_installed_stays(wheel: Mkl, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    (prefix / "include" / "mklml").mkdir(parents=True)
    (prefix / "include" / "mklml" / "mkl_cblas.h").write_text("upstream's")
    (prefix / "lib").mkdir()
    (prefix / "lib" / "libmklml_intel.so").write_text("upstream's")
    finish(RealSystem(), wheel, str(prefix))
    assert (prefix / "lib" / "libmklml_intel.so").read_text() == "upstream's"
    assert files_under(prefix) == ["include/mklml/mkl_cblas.h", "lib/libiomp5.so", "lib/libmklml_intel.so"]


@pytest.mark.parametrize("name", ["libmklml_intel.so", "libiomp5.so"])
def test_an_mkl_that_upstream_found_elsewhere_is_no_build_without_mkl(none: Mkl, tmp_path: Path, name: str) -> None:
    (tmp_path / "prefix" / "lib").mkdir(parents=True)
    (tmp_path / "prefix" / "lib" / name).write_text("another's")
    with pytest.raises(BuildFailed, match=f"found an MKL of its own: .*{name}") as caught:
        finish(RealSystem(), none, str(tmp_path / "prefix"))
    assert "MKLROOT" in caught.value.hint
    assert files_under(tmp_path / "prefix") == [f"lib/{name}"]


# ------------------------------------------------------------------------------------------------ a folder of yours


def own(folder: Path, lib: str = "lib", include: str = "include", without: Sequence[str] = ()) -> Path:
    for name in (*(f"{include}/{name}" for name in HEADERS[:3]), *(f"{lib}/{name}" for name in mkl_files.LIBRARIES)):
        if Path(name).name not in without:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"own {name}")
    return folder


def provided(path: Path) -> Mkl:
    request = BuildRequest("python", "out", mkl=str(path))
    return provide(RealSystem(), request, RELEASE, "/unused", Store(RealSystem(), "/unused", silent), silent)


@pytest.mark.parametrize(
    ("top", "lib", "include"),
    [("mkl", "lib", "include"), ("mkl", "lib/intel64", "include"), ("mkl/linux", "lib", "../include")],
)
def test_a_folder_of_yours(tmp_path: Path, tree: SourceTree, top: str, lib: str, include: str) -> None:
    folder = own(tmp_path / top, lib, include)
    found = provided(folder)
    assert found.kind == "folder" and look(str(folder))[1] == ()
    place(RealSystem(), found, tree, RELEASE)
    assert "mklml_lnx_2018.0.3.20180406/lib/libiomp5.so" in files_under(Path(tree.mkldnn_folder, "external"))


def test_links_become_files(tmp_path: Path, tree: SourceTree) -> None:
    folder = own(tmp_path / "mkl")
    (folder / "lib" / "libiomp5.so").rename(folder / "lib" / "libiomp5.so.5")
    (folder / "lib" / "libiomp5.so").symlink_to("libiomp5.so.5")
    place(RealSystem(), provided(folder), tree, RELEASE)
    placed = Path(tree.mkldnn_folder, "external", RELEASE.mklml, "lib", "libiomp5.so")
    assert not placed.is_symlink() and placed.read_text() == "own lib/libiomp5.so"


def test_another_file_is_another_identity(tmp_path: Path) -> None:
    folder = own(tmp_path / "mkl")
    before = provided(folder).identity
    assert provided(folder).identity == before
    (folder / "lib" / "libiomp5.so").write_text("newer")
    assert provided(folder).identity != before


@pytest.mark.parametrize(
    ("without", "missing"),
    [
        (["libiomp5.so"], "lib/libiomp5.so"),
        (["mkl_vsl.h"], "include/mkl_vsl.h"),
        (["mkl_cblas.h", "libmklml_intel.so"], "include/mkl_cblas.h, lib/libmklml_intel.so"),
    ],
)
def test_a_folder_that_lacks_files(tmp_path: Path, without: list[str], missing: str) -> None:
    folder = own(tmp_path / "mkl", without=without)
    with pytest.raises(UsageError, match=f"lacks {missing}$") as caught:
        provided(folder)
    assert "lib/libmklml_intel.so" in caught.value.hint and "--mkl wheel" in caught.value.hint
    assert ", ".join(look(str(folder))[1]) == missing


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lacks include/mkl_cblas\.h, .*lib/libiomp5\.so"):
        provided(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["lib/libmkl_rt.so", "lib/intel64/libmkl_rt.so.2", "lib/libmkl_core.so.1"])
def test_a_full_mkl_is_refused_by_name(tmp_path: Path, name: str) -> None:
    folder = own(tmp_path / "mkl", without=mkl_files.LIBRARIES)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("")
    with pytest.raises(UsageError, match=r"is a full MKL \(libmkl_(rt|core)\.so\)") as caught:
        provided(folder)
    assert "--mkl none" in caught.value.hint
    assert full_mkl(str(folder)) in name


def test_a_folder_with_both_is_taken(tmp_path: Path) -> None:
    folder = own(tmp_path / "mkl")
    (folder / "lib" / "libmkl_rt.so").write_text("")
    assert provided(folder).kind == "folder"


# -------------------------------------------------------------------------------------------------- what is fetched


class Index(RealSystem):
    """uv puts files where it is told to; what it was asked is in ``asked``."""

    def __init__(self, *, cached: bool = True, broken: str = "", says: Completed | None = None) -> None:
        super().__init__()
        self.cached, self.broken, self.says = cached, broken, says
        self.asked: list[list[str]] = []
        self.environ: Mapping[str, str] = {}

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if not argv[0].endswith("uv"):
            return super().run(argv, **options)
        self.asked.append(list(argv))
        self.environ = options["env"]
        if "--offline" in argv and not self.cached:
            return completed(returncode=1, stderr="error: not found in the cache and the network was disabled\n")
        if self.says is not None:
            return self.says
        target = Path(argv[argv.index("--target") + 1])
        (target / "ideep4py" / "lib").mkdir(parents=True, exist_ok=True)
        (target / "include").mkdir(exist_ok=True)
        (target / ".lock").write_text("")
        for name in ("include/mkl_cblas.h", *(f"ideep4py/lib/{name}" for name in mkl_files.LIBRARIES)):
            (target / name).write_text("damaged" if name.endswith(self.broken or "\0") else name)
        return completed()


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pins of what the ``Index`` above has."""
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "mkl_cblas.h").write_text("include/mkl_cblas.h")
    digests = {}
    for name in mkl_files.LIBRARIES:
        (tmp_path / name).write_text(f"ideep4py/lib/{name}")
        digests[name] = mkl_files.file_digest(f"{tmp_path}/{name}")
    header = {"project": "mkl-include", "wheel": "1" * 64, "digest": mkl_files.folder_digest(str(folder))}
    pins = {"headers": {"2018.0.3": header}, "libraries": {"2.0.0.post3": {"python": "3.7", **digests}}}
    monkeypatch.setattr(mkl_files, "pins", lambda: pins)


def fetched(system: Index, store: Path, mkl: str = "wheel", **options: Any) -> tuple[Mkl, list[str]]:
    told: list[str] = []
    request = BuildRequest("python", "out", mkl=mkl, march="x86-64")
    pieces = Store(system, str(store), told.append)
    return provide(system, request, RELEASE, str(store / "work"), pieces, told.append, **options), told


@pytest.mark.usefixtures("pinned")
def test_wheels_are_unpacked_by_hash_once(tmp_path: Path) -> None:
    system = Index()
    found, told = fetched(system, tmp_path / "store")
    assert [Path(path).read_text() for path in found.libraries] == [f"ideep4py/lib/{x}" for x in mkl_files.LIBRARIES]
    assert Path(found.include, "mkl_cblas.h").is_file()
    assert len(told) == 2 and "headers" in told[0] and "ideep4py 2.0.0.post3" in told[1]
    assert all("--require-hashes" in argv and "--no-deps" in argv for argv in system.asked)
    assert "--python-version" not in system.asked[0] and system.asked[1][-4] == "3.7"
    again, told = fetched(system, tmp_path / "store")
    assert again == found and told == [] and len(system.asked) == 2
    # Of the wheel of 35 MB nothing else is kept.
    assert files_under(Path(found.libraries[0]).parent) == sorted(mkl_files.LIBRARIES)
    left = [path.name for path in (tmp_path / "store" / "mkl").iterdir()]
    assert sorted({Path(name).suffix for name in left}) == ["", ".json", ".lock"]


@pytest.mark.usefixtures("pinned")
def test_a_damaged_piece_is_fetched_anew(tmp_path: Path) -> None:
    system = Index()
    found, _ = fetched(system, tmp_path / "store")
    Path(found.libraries[0]).write_text("scribbled over")
    again, told = fetched(system, tmp_path / "store")
    assert again == found and len(system.asked) == 3 and any("damaged" in text for text in told)
    assert Path(found.libraries[0]).read_text() == "ideep4py/lib/libmklml_intel.so"


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("broken", ["mkl_cblas.h", "libmklml_intel.so", "libiomp5.so"])
def test_a_file_that_is_not_the_pinned_one(tmp_path: Path, broken: str) -> None:
    with pytest.raises(ApplyFailed, match=r"(is|are) not the pinned one"):
        fetched(Index(broken=broken), tmp_path / "store")
    kept = Store(RealSystem(), str(tmp_path / "store"), silent)
    found, _ = fetched(Index(), tmp_path / "store")
    assert found.kind == "wheel" and kept.root == str(tmp_path / "store")


@pytest.mark.usefixtures("pinned")
def test_the_network_is_used_where_the_cache_does_not_do(tmp_path: Path) -> None:
    system = Index(cached=False)
    fetched(system, tmp_path / "store")
    assert ["--offline" in argv for argv in system.asked] == [True, False, True, False]


@pytest.mark.usefixtures("pinned")
def test_no_network_is_said_and_nothing_stays(tmp_path: Path) -> None:
    says = completed(returncode=2, stderr="error: Failed to fetch: dns error: failed to lookup address information\n")
    with pytest.raises(CouldNotCheck, match=r"fetching mkl-include==2018\.0\.3: the network is needed"):
        fetched(Index(cached=False, says=says), tmp_path / "store")
    assert [name for name in files_under(tmp_path / "store") if not name.endswith(".lock")] == []


@pytest.mark.usefixtures("pinned")
def test_a_wheelhouse_and_the_users_own_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", "/some/wheels")
    system = Index()
    fetched(system, tmp_path / "store")
    assert system.environ["UV_OFFLINE"] == "1" and system.environ["UV_FIND_LINKS"] == "/some/wheels"
    source = PackageSource(find_links=("/other",), no_index=True)
    offline = Index()
    fetched(offline, tmp_path / "another", source=source)
    assert all("--find-links=/other" in argv and "--no-index" in argv for argv in offline.asked)
    says = completed(returncode=1, stderr="Because mkl-include was not found in the provided package locations\n")
    with pytest.raises(CouldNotCheck, match="/other does not hold what is needed"):
        fetched(Index(cached=False, says=says), tmp_path / "third", source=source)


@pytest.mark.usefixtures("pinned")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")
def test_without_mkl_only_headers_are_fetched_and_the_library_is_compiled(tmp_path: Path) -> None:
    system = Index()
    found, told = fetched(system, tmp_path / "store", mkl="none")
    assert found.kind == "none" and len(system.asked) == 1 and "of our own" in told[-1]
    assert found.libraries == (f"{tmp_path}/store/work/libmklml_intel.so",)
    assert stub.MARK.encode() in Path(found.libraries[0]).read_bytes()
    assert fetched(system, tmp_path / "store", mkl="none")[0].identity == found.identity


@pytest.mark.usefixtures("pinned")
def test_the_compiler_is_that_of_the_builds_environment(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cc").write_text("#!/bin/sh\necho no luck >&2\nexit 1\n")
    (tools / "cc").chmod(0o755)
    with pytest.raises(BuildFailed, match="no luck"):
        fetched(Index(), tmp_path / "store", mkl="none", environ={"PATH": f"{tools}:/usr/bin:/bin"})


def test_auto_is_two_builds(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two builds"):
        fetched(Index(), tmp_path, mkl=module.AUTO)
