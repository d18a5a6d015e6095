"""Git as the builder uses it, on real repositories: what it fetches, what it never does, what it says when it fails."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ideepdoctor.builder.git import MINIMUM_GIT, Fetched, Repository, check_ref, git_environment, require_git
from ideepdoctor.builder.git_errors import CannotFetch, GitUnusable, NoSuchRef, Refused, explained
from ideepdoctor.builder.urls import check_url, is_address, is_remote, resolved, shown
from ideepdoctor.errors import BuildFailed, DoctorError, Exit, UsageError
from ideepdoctor.rules import idp803
from ideepdoctor.system import RealSystem
from tests.builder.standin import StandIn, git, make_standin
from tests.doubles import CountingSystem, FakeSystem, completed


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return make_standin(tmp_path_factory.mktemp("standin"))


def begin(folder: Path, url: str, told: list[str] | None = None, **environ: str) -> Fetched:
    tell = (told if told is not None else []).append
    return Fetched.begin(RealSystem(), {**os.environ, **environ}, str(folder), url, tell)


class Quiet(SimpleHTTPRequestHandler):
    """Files over HTTP without git's protocol; under /private nothing without a password."""

    def log_message(self, *_arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith("/private"):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="private"')
            self.end_headers()
        else:
            super().do_GET()


@pytest.fixture
def served(tmp_path: Path, standin: StandIn) -> Iterator[str]:
    """Address of a server that has the stand-in of MKL-DNN as files."""
    git(tmp_path, "clone", "--quiet", "--bare", standin.mkldnn_url, "files/mkl-dnn.git")
    git(tmp_path / "files/mkl-dnn.git", "update-server-info")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "files")))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class Smart(Quiet):
    """Git's protocol over HTTP, by git's own backend, as public servers have it."""

    root = ""

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(body)

    def answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environ, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(lines.pop("Status", "200").split()[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def smart(standin: StandIn) -> Iterator[str]:
    """Address of a server that has the stand-in's repositories."""
    handler = type("Handler", (Smart,), {"root": str(standin.folder)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_server_as_public_ones_are(tmp_path: Path, standin: StandIn, smart: str):
    wanted = standin.commits["post3"]
    for number, ref in enumerate((wanted, wanted[:7], "v2.0.0", "v1.0.4")):
        name = {"v2.0.0": "v2.0.0", "v1.0.4": "v1.0.4"}.get(ref, "post3")
        assert begin(tmp_path / str(number), f"{smart}/ideep").checkout(ref) == standin.commits[name]
        assert (tmp_path / str(number) / "python/setup.py").is_file()
    assert [git(tmp_path / str(number), "rev-list", "--count", "HEAD") for number in range(4)] == ["1", "4", "1", "1"]
    with pytest.raises(NoSuchRef):
        begin(tmp_path / "x", f"{smart}/ideep").checkout("1" * 40)
    with pytest.raises(CannotFetch, match="may be read"):
        begin(tmp_path / "y", f"{smart}/nothing").checkout("v1.0.4")


def test_a_tag_is_fetched_without_its_history(tmp_path: Path, standin: StandIn):
    told: list[str] = []
    commit = begin(tmp_path / "r", standin.url, told).checkout("v2.0.0")
    assert commit == standin.commits["v2.0.0"]
    assert git(tmp_path / "r", "rev-list", "--count", "HEAD") == "1"
    assert (tmp_path / "r/python/setup.py").is_file()
    assert told == [f"fetching v2.0.0 from {standin.url}"]


@pytest.mark.parametrize("name", ["master", "refs/heads/master"])
def test_a_branch(tmp_path: Path, standin: StandIn, name: str):
    assert begin(tmp_path / "r", standin.url).checkout(name) == standin.commits["master"]


def test_a_whole_hash_is_fetched_without_its_history(tmp_path: Path, standin: StandIn):
    wanted = standin.commits["post3"]
    assert begin(tmp_path / "r", standin.url).checkout(wanted.upper()) == wanted
    assert git(tmp_path / "r", "rev-list", "--count", "HEAD") == "1"


def test_a_short_hash_takes_only_the_files_of_its_commit(tmp_path: Path, standin: StandIn):
    wanted = standin.commits["post3"]
    assert begin(tmp_path / "r", standin.url).checkout(wanted[:8]) == wanted
    assert (tmp_path / "r/python/setup.py").is_file()
    init = git(Path(standin.url), "rev-parse", "v1.0.3:python/external/__init__.py")
    here = git(tmp_path / "r", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert git(Path(standin.url), "rev-parse", "v1.0.3^{tree}") in here
    assert init not in here


def test_a_whole_hash_from_a_server_that_gives_only_its_branches(tmp_path: Path, standin: StandIn):
    mirror = tmp_path / "mirror.git"
    git(tmp_path, "clone", "--quiet", "--bare", standin.url, str(mirror))
    git(mirror, "config", "uploadpack.allowAnySHA1InWant", "false")
    git(mirror, "config", "protocol.version", "0")  # version 2 gives what it is asked for
    environ = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.version", "GIT_CONFIG_VALUE_0": "0"}
    wanted = standin.commits["v1.0.4"]
    assert begin(tmp_path / "r", str(mirror), **environ).checkout(wanted) == wanted


def test_a_server_without_git_s_protocol(tmp_path: Path, standin: StandIn, served: str):
    wanted = standin.mkldnn_commits["v0.14"]
    assert begin(tmp_path / "a", f"{served}/mkl-dnn.git").checkout(wanted) == wanted
    assert begin(tmp_path / "b", f"{served}/mkl-dnn.git").checkout("v0.14") == wanted
    assert begin(tmp_path / "c", f"{served}/mkl-dnn.git").checkout(wanted[:9]) == wanted


def test_a_bundle(tmp_path: Path, standin: StandIn):
    git(Path(standin.url), "bundle", "create", "--quiet", str(tmp_path / "all.bundle"), "--all")
    address = f"{tmp_path}/all.bundle"
    for number, name in enumerate(("v1.0.4", standin.commits["v1.0.4"], standin.commits["v1.0.4"][:7])):
        assert begin(tmp_path / str(number), address).checkout(name) == standin.commits["v1.0.4"]


@pytest.mark.parametrize("name", ["v9.9", "refs/tags/v9", "1" * 40, "1111111", "f" * 39])
def test_a_ref_that_is_not_there_names_the_tags(tmp_path: Path, standin: StandIn, name: str):
    with pytest.raises(NoSuchRef, match=f"{name} at") as caught:
        begin(tmp_path / "r", standin.url).checkout(name)
    assert caught.value.hint == "its tags: v1.0.3, v1.0.4, v2.0.0"
    assert caught.value.exit_code == Exit.USAGE


def test_a_tag_that_is_named_like_a_hash_is_no_commit(tmp_path: Path, standin: StandIn):
    clone = standin.clone("master", tmp_path / "clone")
    for name in ("8800808", "8" * 40):
        # git itself makes no ref of 40 digits by its commands
        Path(clone, f".git/refs/tags/{name}").write_text(standin.commits["v1.0.4"] + "\n")
        with pytest.raises(NoSuchRef, match=f"no commit {name}"):
            begin(tmp_path / f"r{len(name)}", str(clone)).checkout(name)


def test_digits_that_begin_two_commits(tmp_path: Path):
    repository = tmp_path / "many"
    repository.mkdir()
    git(repository, "init", "--quiet")
    # Commits without number, until two of them begin alike: digits are cut to what the check lets through.
    tree = git(repository, "write-tree")
    first = git(repository, "commit-tree", tree, "-m", "first")
    git(repository, "update-ref", "refs/heads/one", first)
    system = FakeSystem()
    double = first[:7] + "0" * 33
    system.answers = [
        (lambda call: "--disambiguate=" + first[:7] in call.argv, f"{first}\n{double}\n"),
        (lambda call: "cat-file" in call.argv, "commit\n"),
        (lambda call: True, completed()),
    ]
    here = Fetched(Repository(system, {}, "/r"), "https://x.invalid/y", lambda _text: None)
    with pytest.raises(NoSuchRef, match="begins 2 commits") as caught:
        here.checkout(first[:7])
    assert caught.value.hint == "give more digits"


def test_a_tag_of_a_file_is_no_commit(tmp_path: Path, standin: StandIn):
    clone = standin.clone("master", tmp_path / "clone")
    git(clone, "tag", "blob", git(clone, "rev-parse", "HEAD:README.md"))
    with pytest.raises(NoSuchRef, match=r"refs/tags/blob at .* is no commit"):
        begin(tmp_path / "r", str(clone)).checkout("blob")


def test_nobody_answers(tmp_path: Path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(CannotFetch, match="cannot be reached: unable to access") as caught:
        begin(tmp_path / "r", f"https://127.0.0.1:{port}/ideep.git").checkout("v1.0.4")
    assert caught.value.exit_code == Exit.COULD_NOT_CHECK
    assert "proxy" in caught.value.hint


@pytest.mark.parametrize("path", ["nothing.git", "private/ideep.git"])
def test_a_repository_that_may_not_be_read_asks_for_no_password(tmp_path: Path, served: str, path: str):
    asking = tmp_path / "ask"
    asking.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho x\n")
    asking.chmod(0o755)
    environ = {"GIT_ASKPASS": str(asking), "SSH_ASKPASS": str(asking), "DISPLAY": ":9"}
    with pytest.raises(CannotFetch, match=r"no repository at .* that may be read"):
        begin(tmp_path / "r", f"{served}/{path}", **environ).checkout("v1.0.4")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_git(tmp_path: Path, there: bool):
    if there:
        (tmp_path / "empty").mkdir()
    with pytest.raises(CannotFetch, match="no git repository in"):
        begin(tmp_path / "r", str(tmp_path / "empty")).checkout("v1.0.4")


def test_an_address_s_password_is_in_no_command_and_no_message(tmp_path: Path, served: str):
    system = CountingSystem()
    url = served.replace("http://", "http://me:topsecret@") + "/private/x.git"
    told: list[str] = []
    with pytest.raises(CannotFetch) as caught:
        Fetched.begin(system, os.environ, str(tmp_path / "r"), url, told.append).checkout("v1.0.4")
    texts = [*told, caught.value.message, caught.value.hint, *caught.value.context.values()]
    texts += [word for command in system.commands for word in command]
    assert len(system.commands) >= 3
    assert not [text for text in texts if "topsecret" in text]


def test_the_address_is_forgotten(tmp_path: Path, standin: StandIn):
    here = begin(tmp_path / "r", f"file://{standin.mkldnn_url}")
    here.checkout("v0.14")
    here.forget_remote()
    files = [path for path in (tmp_path / "r/.git").rglob("*") if path.is_file()]
    assert not [path for path in files if standin.mkldnn_url.encode() in path.read_bytes()]
    assert git(tmp_path / "r", "log", "-1", "--format=%H") == standin.mkldnn_commits["v0.14"]


def test_no_hook_no_template_no_conversion(tmp_path: Path, standin: StandIn):
    template = tmp_path / "template"
    hooks = template / "hooks"
    hooks.mkdir(parents=True)
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / hook).chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[core]\n\tautocrlf = true\n\thooksPath = {hooks}\n[init]\n\ttemplateDir = {template}\n")
    begin(tmp_path / "r", standin.url, GIT_CONFIG_GLOBAL=str(config), GIT_TEMPLATE_DIR=str(template)).checkout("v1.0.4")
    assert not (tmp_path / "ran").exists()
    assert b"\r" not in (tmp_path / "r/CMakeLists.txt").read_bytes()


def test_a_mirror_by_the_user_s_configuration_is_used(tmp_path: Path, standin: StandIn):
    config = tmp_path / "config"
    config.write_text(f'[url "{standin.folder}/"]\n\tinsteadOf = https://far.invalid/\n')
    here = begin(tmp_path / "r", "https://far.invalid/ideep", GIT_CONFIG_GLOBAL=str(config))
    assert here.checkout("v1.0.4") == standin.commits["v1.0.4"]


def test_another_repository_s_variables_do_not_count(tmp_path: Path, standin: StandIn):
    other = standin.clone("master", tmp_path / "other")
    head = git(other, "rev-parse", "HEAD")
    environ = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / ".git/index")}
    begin(tmp_path / "r", standin.url, **environ).checkout("v1.0.4")
    assert (tmp_path / "r/CMakeLists.txt").is_file()
    assert git(other, "rev-parse", "HEAD") == head


def test_a_submodule_s_commit(tmp_path: Path, standin: StandIn):
    here = begin(tmp_path / "r", standin.url)
    here.checkout("v1.0.4")
    assert here.repository.link("mkl-dnn") == standin.mkldnn_commits["v0.14"]
    assert here.repository.link("python") is None
    assert here.repository.link("nothing") is None


def test_no_git():
    with pytest.raises(GitUnusable, match="no git on PATH") as caught:
        require_git(FakeSystem(), {})
    assert "install git" in caught.value.hint


@pytest.mark.parametrize(
    ("version", "usable"), [("1.8.3.1", False), ("2.16.9", False), ("2.17.1", True), ("3.0", True)]
)
def test_the_oldest_git(version: str, usable: bool):
    assert MINIMUM_GIT == idp803.LEAST
    system = FakeSystem()
    system.answers = [(["git", "--version"], f"git version {version} (Apple Git-1)\n")]
    if usable:
        require_git(system, {})
    else:
        with pytest.raises(GitUnusable, match=f"git {version} is too old: 2.17"):
            require_git(system, {})


def test_the_environment_for_git():
    given = {
        "PATH": "/bin",
        "https_proxy": "p",
        "GIT_DIR": "x",
        "GIT_ASKPASS": "x",
        "GIT_CONFIG": "x",
        "GIT_TRACE": "1",
        "SSH_ASKPASS": "x",
        "GIT_SSH_COMMAND": "ssh -i key",
        "GIT_SSL_CAINFO": "ca",
        "GIT_CONFIG_GLOBAL": "g",
        "LC_ALL": "ja_JP.UTF-8",
    }
    assert git_environment(given) == {
        "PATH": "/bin",
        "https_proxy": "p",
        "GIT_SSH_COMMAND": "ssh -i key",
        "GIT_SSL_CAINFO": "ca",
        "GIT_CONFIG_GLOBAL": "g",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "SSH_ASKPASS_REQUIRE": "never",
        "LC_ALL": "C",
    }


@pytest.mark.parametrize("ref", ["v1.0.3", "refs/tags/v1", "8800808", "a", "feature/x+y", "v2.0.0-rc_1"])
def test_a_ref_that_can_be_one(ref: str):
    assert check_ref(ref) == ref


@pytest.mark.parametrize(
    "ref",
    ["", "-x", "--upload-pack=x", "a b", "a:b", "a..b", "a~1", "a^", "a*", "x/", "x.lock", "a//b", "a\nb", "@{1}", "."],
)
def test_a_ref_that_cannot_be_one(ref: str):
    with pytest.raises(UsageError, match="cannot be a tag or commit"):
        check_ref(ref)


@pytest.mark.parametrize("url", ["-x", "", "a\nb", "ext::sh -c true", "fd::3", "transport::x", "ftp://x/y", "foo://x"])
def test_an_address_that_is_not_fetched_from(url: str):
    with pytest.raises(UsageError):
        check_url(url)


@pytest.mark.parametrize(
    ("source", "address", "remote"),
    [
        ("https://x/y.git", True, True),
        ("ssh://x/y", True, True),
        ("git@host:intel/ideep", True, True),
        ("host:ideep", True, True),
        ("file:///x/y", True, False),
        ("ext::x", True, True),
        ("/x/y", False, False),
        ("./a:b", False, False),
        ("ideep-1.0.4.tar.gz", False, False),
    ],
)
def test_what_an_address_is(source: str, address: bool, remote: bool):
    assert (is_address(source), is_remote(source)) == (address, remote)


@pytest.mark.parametrize(
    ("url", "base", "meant"),
    [
        ("https://h/mkl-dnn", "https://h/ideep.git", "https://h/mkl-dnn"),
        ("../mkl-dnn", "https://h/intel/ideep.git", "https://h/intel/mkl-dnn"),
        ("../../01org/mkl-dnn", "https://h/intel/ideep.git/", "https://h/01org/mkl-dnn"),
        ("./sub", "/a/b", "/a/b/sub"),
        ("../mkl-dnn", "git@h:intel/ideep", "git@h:intel/mkl-dnn"),
        ("../mkl-dnn", "git@h:ideep", "git@h:mkl-dnn"),
    ],
)
def test_an_address_relative_to_another(url: str, base: str, meant: str):
    assert resolved(url, base) == meant


def test_passwords_are_not_shown():
    assert (
        shown("fatal: 'https://a:b@h/x' and ssh://u@h/y, a@b.c") == "fatal: 'https://***@h/x' and ssh://***@h/y, a@b.c"
    )
    assert shown("https://h/x?u=a@b") == "https://h/x?u=a@b"


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("fatal: unable to access 'U': Could not resolve host: h", CannotFetch, "cannot be reached"),
        ("ssh: connect to host h port 22: Connection timed out", CannotFetch, "cannot be reached"),
        ("fatal: unable to access 'U': SSL certificate problem: expired", CannotFetch, "cannot be reached"),
        ("git@h: Permission denied (publickey).", CannotFetch, "may be read"),
        ("remote: Repository not found.\nfatal: repository 'U' not found", CannotFetch, "may be read"),
        ("error: Server does not allow request for unadvertised object 1", Refused, "does not give"),
        ("fatal: dumb http transport does not support shallow capabilities", Refused, "does not give"),
        ("fatal: detected dubious ownership in repository at 'U'", CannotFetch, "another user"),
        ("error: unable to write file x: No space left on device", BuildFailed, "no room"),
        ("fatal: sha1 file '.git/index.lock' write error. Out of diskspace", BuildFailed, "no room"),
        ("fatal: something new", CannotFetch, "git failed with https://h/proxy/ssl.git: something new"),
    ],
)
def test_what_git_says_in_words(said: str, kind: type[DoctorError], words: str):
    url = "https://h/proxy/ssl.git"
    error = explained(completed(returncode=128, stderr=said.replace("U", url) + "\n"), url)
    assert type(error) is kind
    assert words in error.message


def test_a_server_that_never_ends():
    error = explained(completed(returncode=-9, timed_out=True), "https://h/x")
    assert error.message == "https://h/x did not answer in time"
