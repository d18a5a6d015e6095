"""Fetches files of distributions by hash, with pip's own network: its index, proxies, certificates and passwords.

Runs under a Python that has the pinned pip: ``python -I - REQUEST_FILE < fetch.py``. The request is JSON:
``{"folder": where to, "wanted": [{"name", "version", "sha256": [...], "every": bool}]}``; ``every``: one file for each
hash, else one file for any of them. Standard error gets a line of JSON per file (``{"done": n, "name", "bytes"}``),
standard output one document at the end: ``{"files": {sha256: name}, "errors": [{"kind", "what", "text"}]}``, where kind
is one of missing, denied, gone, hash, network, disk. Files are whole or absent.
"""

from __future__ import print_function

import errno
import hashlib
import json
import os
import re
import sys


def main(request):
    from pip._internal.commands import create_command
    from pip._internal.index.collector import LinkCollector

    command = create_command("download")
    words = ["--no-deps", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    words += [] if os.environ.get("PIP_RETRIES") else ["--retries", "2"]
    with command.main_context():
        options, _ = command.parse_args(words + ["x"])
        session = command.get_default_session(options)
        scope = LinkCollector.create(session, options=options, suppress_no_index=True).search_scope
        world = World(session, scope, request["folder"])
        for number, wanted in enumerate(request["wanted"]):
            if not world.get(wanted, number + 1):
                break
    print(json.dumps({"files": world.files, "errors": world.errors}))


class World(object):
    """Where files come from and go to."""

    def __init__(self, session, scope, folder):
        self.session, self.scope, self.folder = session, scope, folder
        self.files, self.errors, self.known = {}, [], {}

    def get(self, wanted, number):
        """Fetch one release; False: there is no use in trying others."""
        what = "%s %s" % (wanted["name"], wanted["version"])
        try:
            links = self.links(wanted["name"])
            left = [digest for digest in wanted["sha256"] if digest not in self.files]
            if not wanted["every"] and len(left) < len(wanted["sha256"]):
                return True
            if not wanted["every"]:
                # A wheel needs nothing to be built with.
                wheels = [link.hash for link in links if link.filename.endswith(".whl")]
                left.sort(key=lambda digest: digest not in wheels)
            for digest in left:
                found = self.one(links, wanted, digest)
                if found is not None:
                    self.files[digest] = found[0]
                    told = {"done": number, "name": found[0], "bytes": found[1]}
                    sys.stderr.write(json.dumps(told) + "\n")
                    sys.stderr.flush()
                    if not wanted["every"]:
                        return True
                elif wanted["every"]:
                    self.errors.append({"kind": "missing", "what": what, "text": digest})
            if not wanted["every"]:
                self.errors.append({"kind": "missing", "what": what, "text": ", ".join(wanted["sha256"])})
        except Wrong as wrong:
            self.errors.append({"kind": wrong.kind, "what": what, "text": wrong.text})
            return wrong.kind in ("missing", "gone", "hash")
        return True

    def one(self, links, wanted, digest):
        """Name and size of the file with this digest, fetched; None where no place has it."""
        same = [link for link in links if link.hash_name == "sha256" and link.hash == digest]
        for link in same[:1]:
            return self.download(link, digest, True)
        # A place that tells no digests: the files of that release are tried one after the other.
        start = re.sub(r"[-_.]+", "-", wanted["name"]).lower() + "-" + wanted["version"].lower()
        for link in links:
            named = re.sub(r"[_.]+", "-", link.filename.lower())
            if not link.hash and re.match(re.sub(r"[_.]+", "-", start) + r"(-|$)", named + "-"):
                found = self.download(link, digest, False)
                if found is not None:
                    return found
        return None

    def links(self, name):
        """Links to the files of a project, of every place."""
        from pip._internal.models.link import Link

        if name not in self.known:
            links, answered = [], []
            for place in self.scope.find_links:
                if os.path.isdir(place):
                    paths = [os.path.join(os.path.abspath(place), item) for item in sorted(os.listdir(place))]
                    links += [Link(as_url(path)) for path in paths if os.path.isfile(path)]
            for url in self.scope.get_index_urls_locations(name):
                page = self.page(url)
                answered.append(page is not None)
                links += page or []
            if answered and not any(answered) and not links:
                raise Wrong("missing", "no index has a page of %s" % name)
            self.known[name] = links
        return self.known[name]

    def page(self, url):
        """Links of one page of an index; None where there is no such page."""
        from pip._internal.index.collector import _get_simple_response, _make_index_content, parse_links

        if url.startswith("file:"):
            from pip._internal.utils.urls import url_to_path

            path = url_to_path(url)
            if os.path.isdir(path):
                path = os.path.join(path, "index.html")
            if not os.path.isfile(path):
                return None
            url = as_url(path)
        try:
            response = _get_simple_response(url, self.session)
        except Exception as error:
            wrong = translated(error)
            if wrong.kind == "gone" and "404" in wrong.text:
                return None
            raise wrong
        return list(parse_links(_make_index_content(response)))

    def download(self, link, digest, sure):
        """Fetch a file; None where it is another one and nobody said that it was this one."""
        name = os.path.basename(link.filename)
        part = os.path.join(self.folder, "." + name + ".part")
        try:
            response = self.session.get(link.url_without_fragment, headers={"Accept-Encoding": "identity"}, stream=True)
            response.raise_for_status()
            found, size = hashlib.sha256(), 0
            with open(part, "wb") as stream:
                for chunk in response.iter_content(1 << 18):
                    stream.write(chunk)
                    found.update(chunk)
                    size += len(chunk)
                stream.flush()
                os.fsync(stream.fileno())
            if found.hexdigest() != digest:
                if not sure:
                    return None
                raise Wrong("hash", "%s has sha256 %s, not %s" % (name, found.hexdigest(), digest))
            os.rename(part, os.path.join(self.folder, name))
            return name, size
        except Wrong:
            raise
        except Exception as error:
            raise translated(error)
        finally:
            if os.path.exists(part):
                os.remove(part)


class Wrong(Exception):
    """Why a file could not be had."""

    def __init__(self, kind, text):
        Exception.__init__(self, text)
        self.kind, self.text = kind, text


def translated(error):
    """An exception of pip or of the system as a Wrong."""
    text = str(error) or type(error).__name__
    response = getattr(error, "response", None)
    code = getattr(response, "status_code", None)
    if isinstance(error, (IOError, OSError)) and getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return Wrong("disk", text)
    if code in (401, 403, 407):
        return Wrong("denied", text)
    if code is not None:
        return Wrong("gone", text)
    if isinstance(error, (IOError, OSError)) and getattr(error, "errno", None) in (
        errno.EACCES,
        errno.EROFS,
        errno.EPERM,
    ):
        return Wrong("disk", text)
    return Wrong("network", text)


def as_url(path):
    from pip._internal.utils.urls import path_to_url

    return path_to_url(path)


if __name__ == "__main__":
    with open(sys.argv[1]) as given:
        main(json.load(given))
