"""A small package index on this machine, made from a folder of files, with the faults that a mirror can have."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from ideepdoctor.model.plan import Requirement

USER, PASSWORD = "reader", "s3cret-w0rd"


def project_of(file: str) -> str:
    """Normalised name of the project that a wheel or archive is of."""
    name = re.split(r"-\d", file, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass
class Mirror:
    """What the index serves, and what was asked of it.

    Attributes:
        files: by name.
        gone: names that are listed and not served.
        swapped: names that are served with other bytes than their digest says.
        digests: whether the pages name them.
        private: whether user and password are wanted.
        asked: paths of the requests, in order.
    """

    files: dict[str, Path] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    swapped: set[str] = field(default_factory=set)
    digests: bool = True
    private: bool = False
    port: int = 0
    asked: list[str] = field(default_factory=list)

    def add(self, *folders: Path) -> Mirror:
        """Serve the wheels and archives of these folders, too."""
        for folder in folders:
            self.files |= {path.name: path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz"))}
        return self

    @property
    def url(self) -> str:
        """Of the index, without credentials."""
        return f"http://127.0.0.1:{self.port}/simple"

    @property
    def whole_url(self) -> str:
        """Of the index, with credentials."""
        return f"http://{USER}:{PASSWORD}@127.0.0.1:{self.port}/simple"

    def fetched(self) -> list[str]:
        """Names of the files that were asked for."""
        return [path.rpartition("/")[2] for path in self.asked if path.startswith("/files/")]

    def page(self, project: str) -> str | None:
        names = sorted(name for name in self.files if project_of(name) == project)
        if not names:
            return None
        links = []
        for name in names:
            digest = hashlib.sha256(self.files[name].read_bytes()).hexdigest()
            mark = f"#sha256={digest}" if self.digests else ""
            links.append(f'<a href="/files/{name}{mark}">{name}</a><br>')
        return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"


def changed(data: bytes) -> bytes:
    """A zip archive with other bytes that is still whole: it has a comment now."""
    assert data.endswith(b"\0\0"), "an archive without a comment"
    return data[:-2] + b"\x04\0more"


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_words: object) -> None:
        """A client that goes away is no news."""


def _handler(mirror: Mirror) -> type[BaseHTTPRequestHandler]:
    wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path)
            mirror.asked.append(path)
            if mirror.private and self.headers.get("Authorization") != wanted:
                self.answer(401, b"who are you?", {"WWW-Authenticate": 'Basic realm="mirror"'})
                return
            kind, _, name = path.strip("/").partition("/")
            if kind == "simple" and (page := mirror.page(name.strip("/"))) is not None:
                self.answer(200, page.encode(), {"Content-Type": "text/html"})
            elif kind == "files" and name in mirror.files and name not in mirror.gone:
                data = mirror.files[name].read_bytes()
                self.answer(200, changed(data) if name in mirror.swapped else data, {})
            else:
                self.answer(404, b"not here", {})

        def answer(self, code: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_words: object) -> None:
            pass

    return Handler


@contextmanager
def serving(mirror: Mirror) -> Iterator[Mirror]:
    """Serve on a free port of this machine alone."""
    with _Server(("127.0.0.1", 0), _handler(mirror)) as server:
        mirror.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield mirror
        finally:
            server.shutdown()
            thread.join()


def tiny_wheel(folder: Path, name: str = "tiny", version: str = "1.0", tag: str = "py3-none-any", **more: str) -> Path:
    """A wheel of one module, made by hand; ``more``: further files of its dist-info by name."""
    path = folder / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    parts = {
        f"{name}.py": f"version = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    parts |= {f"{info}/{part}": text for part, text in more.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{part},,\n" for part in (*parts, f"{info}/RECORD")))
    return path


def pin_of(path: Path) -> Requirement:
    """A file as a requirement."""
    name, version = path.name.split("-")[:2]
    return Requirement(name, version, (hashlib.sha256(path.read_bytes()).hexdigest(),))
