"""From a source to a wheel that was proved: the stages of a build in their order, and what each leaves behind."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideepdoctor.builder import mkl as mkls
from ideepdoctor.builder.cache import Piece, Store, key_of
from ideepdoctor.builder.extension import build_extension, stand_for_library
from ideepdoctor.builder.library import INSTALLED, build_folder, build_library, prefix_of, require_library
from ideepdoctor.builder.log import BuildLog
from ideepdoctor.builder.programs import Programs
from ideepdoctor.builder.progress import Meter
from ideepdoctor.builder.recipe import recipe_of
from ideepdoctor.builder.toolchain import Place, compilers_identity, find_compilers, make_tools
from ideepdoctor.builder.trees import provide_tree
from ideepdoctor.builder.wheel import pack, with_proof
from ideepdoctor.model.build import BuildRequest, BuiltWheel, Layout, March, Mkl, SourceTree, Stage, Tools
from ideepdoctor.model.plan import PackageSource

if TYPE_CHECKING:
    from ideepdoctor.commands.session import Session
    from ideepdoctor.stacks.catalog import Lock


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of a build.

    Attributes:
        cache: the doctor's cache folder.
        work: what belongs to this build alone.
    """

    cache: str
    work: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a build gave.

    Attributes:
        wheel: in the folder that was asked for.
        from_cache: it was built by an earlier run.
        tree: what it was built from.
        seconds: of each stage that ran.
    """

    wheel: BuiltWheel
    from_cache: bool
    tree: SourceTree
    seconds: Mapping[Stage, float]


@dataclass(frozen=True, slots=True)
class Build:
    """One build.

    Attributes:
        session: this run.
        request: what was asked, with the number of jobs decided.
        abi: of the interpreter.
        march: what it is compiled for.
        lock: the environment that the wheel is proved in; None: it is not.
        places: folders.
        log: gets everything.
        meter: told how far it is.
        source: where distributions come from.
    """

    session: Session
    request: BuildRequest
    abi: str
    march: March
    lock: Lock | None
    places: Places
    log: BuildLog
    meter: Meter
    source: PackageSource = field(default_factory=PackageSource)

    def run(self) -> Outcome:
        """Go through the stages.

        Raises:
            BuildFailed: a stage failed.
            DoctorError: others, as the stages say.
            OSError: the disk is full, or a folder cannot be written.
        """
        system, work = self.log.watching(), self.places.work
        store = Store(system, f"{self.places.cache}/build", self._tell)
        self._begin(Stage.SOURCE)
        tree = provide_tree(system, self.request, work, store, self._tell)
        release = recipe_of(tree)
        self._begin(Stage.TOOLS)
        place = Place(f"{work}/tools", self.places.cache, self.session.environ.get("PATH", os.defpath))
        flags = release.cxxflags
        tools = make_tools(system, self.request, self.abi, tree, store, place, self._tell, flags, self.source)
        programs = Programs(system, tools.environ, self.meter.line)
        self._begin(Stage.MKL)
        mkl = mkls.provide(
            system,
            self.request,
            release,
            f"{work}/mkl",
            store,
            self._tell,
            source=self.source,
            environ=tools.environ,
        )
        key = self._wheel_key(tree, tools, mkl)
        kept = None if self.request.fresh else store.find("wheel", key)
        if kept is None:
            mkls.place(system, mkl, tree, release)
            self._library(programs, store, tree, tools, mkl)
            staging = self._extension(programs, tree, tools, mkl)
            self._begin(Stage.WHEEL)
            made = pack(
                system,
                staging,
                self.abi,
                tree,
                tools,
                mkl,
                self.march,
                f"{work}/wheel",
                self._tell,
                cache=self.places.cache,
                source=self.source,
            )
        else:
            made = _wheel_of(kept)
        wheel = self._proved(store, key, made, kept)
        self.meter.end()
        return Outcome(self._handed_out(wheel), kept is not None, tree, dict(self.meter.seconds))

    def _library(self, programs: Programs, store: Store, tree: SourceTree, tools: Tools, mkl: Mkl) -> None:
        """MKL-DNN installed where setup.py looks for it: compiled, or from an earlier build."""
        self._begin(Stage.LIBRARY)
        system = programs.system
        if tree.layout is Layout.PREPARE:
            build_library(programs, tree, tools)
            if mkl.kind == mkls.NONE:  # setup.py takes what it finds there, and wants to find something
                name = recipe_of(tree).mklml
                mkls.finish(system, mkl, f"{tree.mkldnn_folder}/external/{name}", Layout.PREPARE)
            return
        prefix = prefix_of(tree)

        def make(folder: str) -> Mapping[str, Any]:
            before = _files_under(prefix)
            build_library(programs, tree, tools)
            mkls.finish(system, mkl, prefix)
            _copy_files(system, prefix, folder, sorted(_files_under(prefix) - before | _installed(prefix)))
            return {}

        compilers = find_compilers(system, self.session.environ.get("PATH", os.defpath))
        key = key_of(
            commit=tree.commit,
            mkldnn=tree.mkldnn_commit,
            compilers=compilers_identity(compilers),
            flags=tools.environ["CXXFLAGS"],
            mkl=mkl.identity,
            march=asdict(self.march),
            prefix=os.path.relpath(prefix, tree.folder),
            builder=_own_digest(),
        )
        piece = store.provide("library", key, make, fresh=self.request.fresh)
        if piece.kept:
            self._tell("MKL-DNN is kept from an earlier build")
            _copy_files(system, piece.folder, prefix, sorted(_files_under(piece.folder)))
            if not Path(build_folder(tree), "CMakeCache.txt").is_file():
                stand_for_library(system, programs, tree, tools)
        require_library(prefix)

    def _extension(self, programs: Programs, tree: SourceTree, tools: Tools, mkl: Mkl) -> str:
        self._begin(Stage.EXTENSION)
        staging = f"{self.places.work}/staging"
        build_extension(programs.system, programs, tree, tools, prefix_of(tree), staging)
        if tree.layout is Layout.PREPARE and mkl.kind == mkls.NONE:
            package = next(path.parent for path in Path(staging).rglob("ideep4py/__init__.py"))
            mkls.finish(programs.system, mkl, str(package), Layout.PREPARE)
        return staging

    def _proved(self, store: Store, key: str, made: BuiltWheel, kept: Piece | None) -> BuiltWheel:
        """The wheel among the kept pieces, proved if that was asked for."""
        system = self.session.system
        if self.lock is not None and not made.proof:
            self._begin(Stage.VERIFY)
            from ideepdoctor.builder.verify import verify

            own = replace(self.session, system=self.log.watching())
            if kept is not None:
                made = _copied(self.log, made, f"{self.places.work}/wheel")
            proof = verify(own, made, self.lock, self.request.python, self._tell, source=self.source)
            made = with_proof(system, made, proof)
        elif kept is not None:
            return made

        def keep(folder: str) -> Mapping[str, Any]:
            system.copy_file(made.path, f"{folder}/{made.name}")
            return {**asdict(made), "path": made.name}

        return _wheel_of(store.provide("wheel", key, keep, fresh=True))

    def _handed_out(self, wheel: BuiltWheel) -> BuiltWheel:
        system, path = self.session.system, str(Path(self.request.output, wheel.name))
        system.make_folder(self.request.output)
        system.write_file(path, Path(wheel.path).read_bytes())
        return replace(wheel, path=path)

    def _wheel_key(self, tree: SourceTree, tools: Tools, mkl: Mkl) -> str:
        return key_of(
            commit=tree.commit,
            mkldnn=tree.mkldnn_commit,
            version=tree.version,
            layout=str(tree.layout),
            tools=tools.identity,
            mkl=[mkl.kind, mkl.identity],
            march=asdict(self.march),
            abi=self.abi,
            builder=_own_digest(),
        )

    def _begin(self, stage: Stage) -> None:
        self.log.begin(str(stage))
        self.meter.begin(stage)

    def _tell(self, text: str) -> None:
        self.log.write(f"# {text}")
        self.session.progress.detail(text)


@lru_cache(maxsize=1)
def _own_digest() -> str:
    """A digest of the doctor's own code and data that make wheels: another doctor may make other ones."""
    folder = files("ideepdoctor") / "builder"
    texts = sorted((item.name, item.read_bytes()) for item in folder.iterdir() if item.is_file())
    return hashlib.sha256(b"\0".join(name.encode() + text for name, text in texts)).hexdigest()


def _wheel_of(piece: Piece) -> BuiltWheel:
    data = dict(piece.note)
    data |= {name: tuple(data[name]) for name in ("cpu_flags", "proof")}
    return BuiltWheel(**{**data, "path": f"{piece.folder}/{data['path']}"})


def _copied(log: BuildLog, wheel: BuiltWheel, folder: str) -> BuiltWheel:
    system = log.watching()
    system.make_folder(folder)
    path = f"{folder}/{wheel.name}"
    system.remove_file(path)
    system.copy_file(wheel.path, path)
    return replace(wheel, path=path)


def _files_under(folder: str) -> set[str]:
    """Files and links under a folder, relative to it."""
    top = Path(folder)
    return {str(path.relative_to(top)) for path in top.rglob("*") if path.is_symlink() or path.is_file()}


def _installed(prefix: str) -> set[str]:
    return {f"{name}/{inner}" for name in INSTALLED for inner in _files_under(f"{prefix}/{name}")}


def _copy_files(system: Any, source: str, target: str, names: list[str]) -> None:
    for name in names:
        path = f"{target}/{name}"
        system.make_folder(os.path.dirname(path))  # noqa: PTH120
        system.remove_file(path)
        system.copy_file(f"{source}/{name}", path)
