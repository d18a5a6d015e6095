"""A small interpreter of Dockerfiles: what ``docker build`` and ``docker run`` would do, in chroots.

It knows what the recipes use: several stages of which only the needed ones are built, ARG, ENV, COPY (of the context,
of stages and images), RUN with cache mounts, USER, WORKDIR, LABEL, ENTRYPOINT, CMD, HEALTHCHECK. An image is a stack of
folders (overlayfs) with its settings; official images have stand-ins that a test gives. Every step runs in a mount
namespace of its own, so that nothing stays mounted. Needs root, and a file system that overlayfs can lie upon.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dockerfile_parse import DockerfileParser
from dockerfile_parse.util import WordSplitter, extract_key_values

SECONDS = 900.0


@dataclass(frozen=True)
class Image:
    """Layers, the lowest first, and what a container of it starts with."""

    layers: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
    user: str = "0:0"
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bind:
    """A file or folder of the host at a place in the container."""

    source: Path
    target: str


class StepFailed(Exception):
    """A step of a Dockerfile ended with another code than 0."""

    def __init__(self, step: str, done: subprocess.CompletedProcess[str]) -> None:
        super().__init__(f"{step}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        self.code, self.said = done.returncode, done.stdout + done.stderr


class Engine:
    """Builds and runs images below a folder.

    Args:
        folder: for layers; removed by whoever made it.
        images: stand-ins by name (``python:3.7-slim-bookworm``).
        environ: variables that every step has beside its own (proxies, certificates), as a docker client hands them on.
    """

    def __init__(self, folder: Path, images: Mapping[str, Image], environ: Mapping[str, str]) -> None:
        self.folder, self.images, self.environ = folder, dict(images), dict(environ)
        self.cache = folder / "cache"
        self.made = 0

    def build(
        self,
        context: Path,
        dockerfile: Path,
        args: Mapping[str, str] | None = None,
        targets: Sequence[str | None] = (None,),
    ) -> list[Image]:
        """Build stages of a Dockerfile (None: the last), each that is needed once. Raises StepFailed."""
        build = _Build(self, context, dockerfile, dict(args or {}))
        return [build.stage(target) for target in targets]

    def layer(self) -> Path:
        """A new empty folder that a layer lies in."""
        self.made += 1
        place = self.folder / f"layer{self.made}"
        place.mkdir(parents=True)
        return place

    def run(
        self,
        image: Image,
        words: Sequence[str] = (),
        *,
        entrypoint: Sequence[str] | None = None,
        environ: Mapping[str, str] | None = None,
        binds: Sequence[Bind] = (),
        user: str | None = None,
        read_only: bool = False,
        network: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a container: the image's entrypoint with these words (none: its CMD); what it writes is lost."""
        start = image.entrypoint if entrypoint is None else tuple(entrypoint)
        return self.step(
            replace(image, user=user or image.user),
            [*start, *(words or image.cmd)],
            self.layer(),
            environ={**(environ or {})},
            binds=binds,
            read_only=read_only,
            network=network,
        )

    def step(
        self,
        image: Image,
        words: Sequence[str],
        upper: Path,
        *,
        environ: Mapping[str, str] | None = None,
        binds: Sequence[Bind] = (),
        read_only: bool = False,
        network: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run words on an image; what they write goes to the folder ``upper``."""
        env = {"HOME": _home(image), **(self.environ if network else {}), **image.env, **(environ or {})}
        lines = self._mounted(image, upper, root := self._point("root"))
        lines += [f"mount --rbind /{name} {root}/{name}" for name in ("proc", "sys", "dev")]
        for bind in binds:
            place = f"{root}{bind.target}"
            made = f"mkdir -p {place}" if bind.source.is_dir() else f"mkdir -p {Path(place).parent} && touch {place}"
            inside = bind.target.startswith(("/proc/", "/sys/"))
            lines += [*([] if inside else [made]), f"mount --bind {bind.source} {place}"]
        if read_only:
            lines += [f"mount -o remount,ro {root}", f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp"]
        given = " ".join(shlex.quote(f"{name}={value}") for name, value in env.items())
        inner = shlex.quote('cd "$1" && shift && exec "$@"')
        lines.append(
            f"exec env -i {given} chroot --groups= --userspec={image.user} {root} "
            f"/bin/sh -c {inner} sh {shlex.quote(image.workdir)} {shlex.join(words)}"
        )
        return self._alone(lines, network)

    def copy(self, image: Image, upper: Path, sources: Sequence[str], origin: Image | Path, target: str) -> None:
        """COPY: sources of an image or of a folder to a place in an image."""
        lines = self._mounted(image, upper, root := self._point("root"))
        if isinstance(origin, Image):
            lines += self._mounted(origin, self.layer(), came := self._point("from"))
        else:
            came = origin
        into = f"{root}{target}"
        for source in sources:
            # A folder's contents are copied, not the folder; a file goes into what ends in a slash; patterns may fit
            # nothing.
            lines.append(
                f"for path in {came}/{source.lstrip('/')}; do if [ -d $path ]; then mkdir -p {into}; "
                f"cp -a $path/. {into}/; elif [ ! -e $path ]; then :; "
                f"elif [ -d {into} ] || [ {into[-1]} = / ]; then mkdir -p {into}; cp -aL $path {into}/; "
                f"else mkdir -p {Path(into).parent}; cp -aL $path {into}; fi; done"
            )
        done = self._alone(lines, network=True)
        if done.returncode:
            raise StepFailed(f"COPY {' '.join(sources)} {target}", done)

    def _mounted(self, image: Image, upper: Path, point: Path) -> list[str]:
        work = self.layer()
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        lower = ":".join(str(layer) for layer in reversed(image.layers)) or str(empty)
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        return [f"mount -t overlay overlay -o {options} {point}", f"chmod 0755 {point}"]

    def _point(self, name: str) -> Path:
        point = self.folder / "mnt" / name
        point.mkdir(parents=True, exist_ok=True)
        return point

    def _alone(self, lines: Sequence[str], network: bool) -> subprocess.CompletedProcess[str]:
        """Run a script in a mount namespace (and one without a network) of its own."""
        words = ["unshare", "--mount", *([] if network else ["--net"]), "--propagation", "private"]
        return subprocess.run(
            [*words, "sh", "-eu", "-c", "\n".join(lines)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )


def _home(image: Image) -> str:
    """What /etc/passwd says of the user's number; the topmost layer's file counts."""
    for layer in reversed(image.layers):
        if (layer / "etc/passwd").is_file():
            rows = [line.split(":") for line in (layer / "etc/passwd").read_text().splitlines()]
            return next((row[5] for row in rows if row[2] == image.user.partition(":")[0]), "/")
    return "/"


class _Build:
    """One run of ``docker build``."""

    def __init__(self, engine: Engine, context: Path, dockerfile: Path, args: dict[str, str]) -> None:
        self.engine, self.context, self.given = engine, context, args
        self.made: dict[int, Image] = {}
        with dockerfile.open("rb") as stream:
            structure = DockerfileParser(fileobj=stream, env_replace=False).structure
        steps = [(item["instruction"], item["value"]) for item in structure if item["instruction"] != "COMMENT"]
        first = next(place for place, (word, _) in enumerate(steps) if word == "FROM")
        self.args: dict[str, str] = {}
        for word, value in steps[:first]:
            assert word == "ARG", word
            self.args |= self._arg(value, {})
        self.stages: list[tuple[str, str, list[tuple[str, str]]]] = []
        for word, value in steps[first:]:
            if word == "FROM":
                base, _, name = re.sub(r"(?i) +as +", " AS ", value).partition(" AS ")
                self.stages.append((_expanded(base, self.args), name.strip(), []))
            else:
                self.stages[-1][2].append((word, value))

    def stage(self, name: str | None) -> Image:
        """Build a stage by name (None: the last), and what it needs, once."""
        names = [stage[1] for stage in self.stages]
        place = len(self.stages) - 1 if name is None else names.index(name)
        if place not in self.made:
            base, _, steps = self.stages[place]
            self.made[place] = self._built(self._image(base), steps)
        return self.made[place]

    def _image(self, name: str) -> Image:
        if name in [stage[1] for stage in self.stages]:
            return self.stage(name)
        return Image() if name == "scratch" else self.engine.images[name]

    def _built(self, image: Image, steps: Sequence[tuple[str, str]]) -> Image:
        args: dict[str, str] = {}
        for word, value in steps:
            known = {**args, **image.env}
            if word == "ARG":
                args |= self._arg(value, {**self.args, **known})
            elif word == "ENV":
                image = replace(image, env={**image.env, **_pairs(value, known)})
            elif word == "LABEL":
                image = replace(image, labels={**image.labels, **_pairs(value, known)})
            elif word == "USER":
                image = replace(image, user=self._number(image, _expanded(value, known)))
            elif word == "WORKDIR":
                image = replace(image, workdir=_expanded(value, known))
                image = self._run(image, ["mkdir", "-p", image.workdir], {}, [])
            elif word == "RUN":
                binds, command = self._cache_mounts(value)
                image = self._run(image, ["/bin/sh", "-c", command], args, binds)
            elif word == "COPY":
                image = self._copied(image, value, known)
            elif word in ("ENTRYPOINT", "CMD"):
                image = replace(image, **{word.lower(): tuple(json.loads(value))})
            elif word == "HEALTHCHECK":
                image = replace(image, health=tuple(json.loads(value.partition("CMD ")[2])))
            else:
                raise NotImplementedError(word)
        return image

    def _arg(self, value: str, known: Mapping[str, str]) -> dict[str, str]:
        name, equals, default = value.partition("=")
        if name in self.given:
            return {name: self.given[name]}
        return {name: _expanded(default, known)} if equals else {name: known[name]} if name in known else {}

    def _run(self, image: Image, words: Sequence[str], args: Mapping[str, str], binds: Sequence[Bind]) -> Image:
        upper = self.engine.layer()
        done = self.engine.step(image, words, upper, environ=args, binds=binds)
        if done.returncode:
            raise StepFailed(f"RUN {words[-1]}", done)
        self.said = done.stdout
        return replace(image, layers=(*image.layers, upper))

    def _copied(self, image: Image, value: str, known: Mapping[str, str]) -> Image:
        words = shlex.split(_expanded(value, known))
        flags = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
        *sources, target = [word for word in words if not word.startswith("--")]
        origin = self._image(flags["from"]) if "from" in flags else self.context
        place = target if target.startswith("/") else f"{image.workdir.rstrip('/')}/{target}"
        upper = self.engine.layer()
        self.engine.copy(image, upper, sources, origin, place)
        image = replace(image, layers=(*image.layers, upper))
        changes = [["chmod", "-R", flags["chmod"], place]] if "chmod" in flags else []
        changes += (
            [["chown", "-R", flags.get("chown", "0:0"), place]] if "chown" in flags or "from" not in flags else []
        )
        for change in changes:
            image = replace(self._run(replace(image, user="0:0"), change, {}, []), user=image.user)
        return image

    def _cache_mounts(self, value: str) -> tuple[list[Bind], str]:
        binds = []
        while match := re.match(r"--mount=(\S+)\s+", value):
            options = dict(part.partition("=")[::2] for part in match[1].split(","))
            assert options["type"] == "cache", value
            place = self.engine.cache / options["target"].strip("/").replace("/", "-")
            place.mkdir(parents=True, exist_ok=True)
            binds.append(Bind(place, options["target"]))
            value = value[match.end() :]
        return binds, value

    def _number(self, image: Image, user: str) -> str:
        """USER as numbers; its own group where none is named."""
        if re.fullmatch(r"\d+:\d+", user):
            return user
        done = self.engine.step(replace(image, user="0:0"), ["getent", "passwd", user], self.engine.layer())
        return ":".join(done.stdout.split(":")[2:4])


def _expanded(text: str, known: Mapping[str, str]) -> str:
    return WordSplitter(text, args={}, envs=dict(known)).dequote()


def _pairs(text: str, known: Mapping[str, str]) -> dict[str, str]:
    return dict(extract_key_values(env_replace=True, args={}, envs=dict(known), instruction_value=text))
