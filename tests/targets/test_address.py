"""What --target may say."""

from __future__ import annotations

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.targets.address import parse_address


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssh:host", "ssh host"),
        ("ssh:host.example.org:2222", "ssh -p 2222 host.example.org"),
        ("ssh:me@host", "ssh me@host"),
        ("ssh:me@corp@host:22", "ssh -p 22 me@corp@host"),
        ("ssh://me@host:22/", "ssh -p 22 me@host"),
        ("ssh:198.18.0.2", "ssh 198.18.0.2"),
        ("ssh:[2001:db8::1]:22", "ssh -p 22 2001:db8::1"),
        ("ssh:me@[fe80::1%eth0]", "ssh me@fe80::1%eth0"),
        ("ssh:2001:db8::1", "ssh 2001:db8::1"),
        ("docker:web_1", "docker exec -i web_1"),
        ("podman:a.b-c", "podman exec -i a.b-c"),
        ("kubectl:pod", "kubectl exec -i pod --"),
        ("kubectl:ns/pod", "kubectl exec -i -n ns pod --"),
        ("kubectl:ns/pod/main", "kubectl exec -i -n ns pod -c main --"),
        ("kubectl:/pod/main", "kubectl exec -i pod -c main --"),
        ("conda:my env", ""),
        ("conda:/opt/conda/envs/x", ""),
    ],
)
def test_a_place_is_the_words_that_reach_it(text: str, words: str) -> None:
    assert " ".join(parse_address(text).words) == words


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "ssh:",
        "ssh:@host",
        "ssh:-oProxyCommand=sh",
        "ssh:-l@host",
        "ssh:a b",
        "ssh:host:",
        "ssh:host:0",
        "ssh:host:65536",
        "ssh:host:22x",
        "ssh:host:²",
        "ssh:[::1",
        "ssh:host;id",
        "docker:",
        "docker:-it",
        "docker:a/b",
        "docker:a\n",
        "kubectl:",
        "kubectl:a/b/c/d",
        "kubectl:a/b/",
        "kubectl:--all",
        "kubectl:A",
        "conda:",
        "conda:-n",
        "SSH:host",
        "telnet:host",
    ],
)
def test_what_is_no_place_is_refused_before_anything_is_started(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert "--target takes ssh:[USER@]HOST[:PORT]" in caught.value.hint
