"""Git as the builder uses it: it never asks, runs no hook, and says in words what went wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.builder.git_errors import CannotFetch, GitUnusable, NoSuchRef, Refused, explained
from ideepdoctor.builder.recipe import is_commit
from ideepdoctor.builder.urls import check_url, shown
from ideepdoctor.errors import UsageError
from ideepdoctor.system import Completed, System

MINIMUM_GIT = (2, 17)
"""The first with partial clones."""

Tell = Callable[[str], None]

_LOCAL_SECONDS = 600.0
_NETWORK_SECONDS = 1800.0
"""For one transfer: MKL-DNN's history has 60 MB. A server that stalls is given up after a minute by ``_OPTIONS``."""
_GREATEST_DEPTH = 2147483647
"""Means the whole history to git."""
_EVERYTHING = ("origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
"""The remote and all its branches and tags."""
_REF = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./+-]*[A-Za-z0-9_+-])?")
_VERSION = re.compile(r"git version (\d+(?:\.\d+)+)")
_OPTIONS = (
    "core.autocrlf=false",
    "core.eol=lf",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "credential.interactive=false",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "init.defaultObjectFormat=sha1",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
)
_KEPT_VARIABLES = frozenset({"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH"})
"""Of those that begin with GIT_; the other ones that are kept begin with GIT_CONFIG_, GIT_SSL_ or GIT_HTTP_."""


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for git: the user's configuration, proxies and certificates, but no repository and no prompt."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("GIT_")
        or name in _KEPT_VARIABLES
        or name.startswith(("GIT_CONFIG_", "GIT_SSL_", "GIT_HTTP_"))
    }
    kept.pop("SSH_ASKPASS", None)
    return kept | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "SSH_ASKPASS_REQUIRE": "never",
        "LC_ALL": "C",
    }


def git_version(system: System, environ: Mapping[str, str]) -> str:
    """Version of the git on PATH; empty: there is none, or it does not say."""
    done = system.run(["git", "--version"], timeout_seconds=20, env=git_environment(environ))
    found = _VERSION.match(done.text())
    return found.group(1) if done.ok and found else ""


def require_git(system: System, environ: Mapping[str, str]) -> None:
    """Raise GitUnusable unless there is a git that is new enough."""
    version = git_version(system, environ)
    if not version:
        raise GitUnusable(
            "there is no git on PATH, and the source is fetched with it",
            hint="install git (Debian, Ubuntu: apt-get install git), or give a folder or archive to --source",
        )
    if tuple(int(part) for part in version.split(".")[:2]) < MINIMUM_GIT:
        needed = ".".join(str(part) for part in MINIMUM_GIT)
        raise GitUnusable(
            f"git {version} is too old: {needed} or later is needed",
            hint="install a newer git, or give a folder or archive to --source",
        )


def check_ref(ref: str) -> str:
    """The ref itself. Raises UsageError for what can be neither a tag nor a branch nor a commit."""
    if not _REF.fullmatch(ref) or ".." in ref or "//" in ref or ref.endswith(".lock"):
        raise UsageError(f"{ref!r} cannot be a tag or commit", hint="such as --ref v1.0.4")
    return ref


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on this machine.

    Attributes:
        system: runs git.
        environ: the user's.
        folder: its working tree.
    """

    system: System
    environ: Mapping[str, str]
    folder: str

    def git(self, *arguments: str, seconds: float = _LOCAL_SECONDS, options: Sequence[str] = ()) -> Completed:
        """Run git in it. Never raises for what git answers."""
        settings = [text for option in (*_OPTIONS, *options) for text in ("-c", option)]
        argv = ["git", "-C", self.folder, *settings, *arguments]
        return self.system.run(argv, timeout_seconds=seconds, env=git_environment(self.environ))

    def answer(self, *arguments: str) -> str | None:
        """What git prints, without the white space around it; None: it failed."""
        # The folder may be another user's: reading it is what the user asked for, and nothing of it is run.
        done = self.git(*arguments, options=(f"safe.directory={self.folder}",))
        return done.text().strip() if done.ok else None

    def link(self, path: str, commit: str = "HEAD") -> str | None:
        """The commit that a submodule is pinned at; None: there is no submodule at that path."""
        words = (self.answer("ls-tree", commit, "--", path) or "").split()
        return words[2] if len(words) > 2 and words[1] == "commit" else None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A new repository with one remote, to fetch from.

    The address stands in its configuration file and in no argument list, for it may hold a password.

    Attributes:
        repository: on this machine.
        url: of the remote.
        tell: told each step.
    """

    repository: Repository
    url: str
    tell: Tell

    @classmethod
    def begin(cls, system: System, environ: Mapping[str, str], folder: str, url: str, tell: Tell) -> Fetched:
        """Make the repository.

        Raises:
            GitUnusable: there is no git, or too old a one.
            UsageError: the address cannot be one.
            CannotFetch: the folder cannot be made a repository.
        """
        check_url(url)
        require_git(system, environ)
        system.make_folder(folder)
        here = cls(Repository(system, environ, folder), url, tell)
        here._start()
        return here

    def checkout(self, ref: str) -> str:
        """Fetch what a tag, a branch or a commit (7 digits or more) names, and write its files.

        Returns:
            The commit, 40 hexadecimal digits. That of a ref which is given by its hash begins with it.

        Raises:
            NoSuchRef: the remote has no such thing.
            CannotFetch: the remote cannot be reached or read.
        """
        self.tell(f"fetching {ref} from {shown(self.url)}")
        if not is_commit(ref):
            commit = self._named(ref)
        elif len(ref) == 40:
            commit = self._whole_hash(ref.lower())
        else:
            commit = self._short_hash(ref.lower())
        self._must(self.repository.git("checkout", "--quiet", "--force", "--detach", commit, seconds=_NETWORK_SECONDS))
        head = self.repository.answer("rev-parse", "HEAD")
        if head != commit:
            raise CannotFetch(f"git checked out {head} instead of {commit}")
        return commit

    def forget_remote(self) -> None:
        """Take the remote's address out of the repository, which goes into the cache."""
        git_folder = Path(self.repository.folder, ".git")
        self.repository.git("config", "--remove-section", "remote.origin")
        for name in ("FETCH_HEAD", "logs", "ORIG_HEAD"):
            self.repository.system.remove_tree(str(git_folder / name))

    def _start(self) -> None:
        self._must(self.repository.git("init", "--quiet", "--template="))
        config = Path(self.repository.folder, ".git", "config")
        quoted = self.url.replace("\\", "\\\\").replace('"', '\\"')
        section = f'[remote "origin"]\n\turl = "{quoted}"\n'.encode("utf-8", "surrogateescape")
        self.repository.system.write_file(str(config), config.read_bytes() + section, 0o600)

    def _start_again(self) -> None:
        """Forget a fetch without files: git would go on to believe that it has them."""
        self.repository.system.remove_tree(f"{self.repository.folder}/.git")
        self._start()

    def _named(self, ref: str) -> str:
        there = self._advertised()
        names = (ref,) if ref.startswith("refs/") else (f"refs/tags/{ref}", f"refs/heads/{ref}")
        name = next((name for name in names if name in there), None)
        if name is None:
            raise self._no_such_ref(ref, there)
        self._fetch_one(name)
        commit = self.repository.answer("rev-parse", "--verify", "FETCH_HEAD^{commit}")
        if commit is None:
            raise NoSuchRef(f"{name} at {shown(self.url)} is no commit")
        return commit

    def _whole_hash(self, commit: str) -> str:
        try:
            self._fetch_one(commit)
        except Refused:  # a server that gives only what it advertises
            self._must(self._fetch(*_EVERYTHING))
        if self.repository.answer("rev-parse", "--verify", f"{commit}^{{commit}}") != commit:
            raise self._no_such_ref(commit, self._advertised())
        return commit

    def _short_hash(self, digits: str) -> str:
        """The history without the files tells which commit it is; then the files of that one."""
        try:
            # A server without git's protocol refuses any depth, the greatest too, at once. Without that git 2.39 would
            # ask such a server for missing files with ever more processes.
            self._must(self._fetch("--filter=blob:none", f"--depth={_GREATEST_DEPTH}", *_EVERYTHING))
            commit = self._begins(digits)
            self._must(self.repository.git("checkout", "--quiet", "--detach", commit, seconds=_NETWORK_SECONDS))
            return commit
        except Refused:
            self._start_again()
            self._must(self._fetch(*_EVERYTHING))
            return self._begins(digits)

    def _begins(self, digits: str) -> str:
        """The one commit that begins with these digits, whatever tags and branches are called."""
        found = (self.repository.answer("rev-parse", f"--disambiguate={digits}") or "").split()
        commits = [name for name in found if self.repository.answer("cat-file", "-t", name) == "commit"]
        if len(commits) > 1:
            raise NoSuchRef(f"{digits} begins {len(commits)} commits at {shown(self.url)}", hint="give more digits")
        if not commits:
            raise self._no_such_ref(digits, self._advertised())
        return commits[0]

    def _fetch_one(self, name: str) -> None:
        """Fetch one ref or commit, without its history where the remote can do that."""
        try:
            self._must(self._fetch("--depth=1", "--no-tags", "origin", name))
        except Refused:
            self._must(self._fetch("--no-tags", "origin", name))

    def _fetch(self, *arguments: str) -> Completed:
        return self.repository.git("fetch", "--quiet", "--force", *arguments, seconds=_NETWORK_SECONDS)

    def _advertised(self) -> dict[str, str]:
        """Every branch and tag of the remote with its hash."""
        done = self._must(self.repository.git("ls-remote", "--heads", "--tags", "origin", seconds=_NETWORK_SECONDS))
        pairs = (line.split("\t", 1) for line in done.text().splitlines() if "\t" in line)
        return {name: commit for commit, name in pairs}

    def _must(self, done: Completed) -> Completed:
        if not done.ok:
            raise explained(done, self.url)
        return done

    def _no_such_ref(self, ref: str, there: Mapping[str, str]) -> NoSuchRef:
        tags = sorted({name.removeprefix("refs/tags/").removesuffix("^{}") for name in there if "/tags/" in name})
        hint = f"its tags: {', '.join(tags[-20:])}" if tags else "it has no tags"
        kind = "commit" if is_commit(ref) else "tag or branch"
        return NoSuchRef(f"there is no {kind} {ref} at {shown(self.url)}", hint=hint)
