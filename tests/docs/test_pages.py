"""The pages before they are built, and the READMEs: what they link to exists, what they say of the program is so."""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path

import pytest

from docs.generate import LANGUAGES, READMES, links, pages
from docs.generate.commands import pages as command_pages
from docs.generate.coverage import Check, Failure, checks, failures, own
from docs.generate.markdown import literal, plain, with_codes
from docs.generate.rules import FAMILIES, family_of
from docs.generate.words import Words
from ideepdoctor.cli import app
from ideepdoctor.cli_manual import commands
from ideepdoctor.errors import Exit
from ideepdoctor.options import Format
from ideepdoctor.render.man import FILES, VARIABLES
from ideepdoctor.rules.explain import EVERYTHING

ROOT = Path(__file__).parents[2]
MADE = {language: pages(language) for language in LANGUAGES}
CODES = frozenset(rule.code() for rule in EVERYTHING)
WRITTEN = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").glob("??/**/*.md"))]


def anchors(text: str) -> set[str]:
    """The anchors of a page as readers of Markdown make them of its headings, and those that stand before one."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    heads = [re.sub(r"[`*]", "", head).strip().lower() for head in re.findall(r"^#{1,6} (.+)$", outside, re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads} | set(
        re.findall(r"^\(([\w-]+)\)=$", outside, re.MULTILINE)
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_page_links_to_is_a_page_and_has_the_place(language: str) -> None:
    made = MADE[language]
    pictures = {f"images/{path.name}" for path in (ROOT / "docs" / "images").glob("*.svg")}
    dead = []
    for name, text in made.items():
        for link in links(text):
            if link.startswith("http"):
                continue
            path, _, place = link.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if there not in made.keys() | pictures or (place and place not in anchors(made[there])):
                dead.append(f"{name}: {link}")
    assert dead == []


@pytest.mark.parametrize("name", sorted(READMES.values()))
def test_what_a_readme_links_to_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    for link in links(text):
        path, _, place = link.partition("#")
        if link.startswith("http"):
            assert re.fullmatch(r"https://[\w.-]+\.\w+(?:/[\w./#?=&%+-]*)?", link), link
            continue
        assert not path or (ROOT / path).exists(), link
        assert not place or place in anchors((ROOT / path).read_text("utf-8") if path else text), link


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_written_page_links_to_in_the_repository_exists(name: str) -> None:
    """Other written pages, pictures and READMEs: what is made in the build is not there."""
    made = MADE[Path(name).parts[1]]
    for link in links((ROOT / name).read_text("utf-8")):
        path = link.partition("#")[0]
        if path and not path.startswith("http") and path not in made:
            assert (ROOT / name).parent.joinpath(path).exists(), link


def test_both_languages_have_the_same_made_pages() -> None:
    own = {language: {path.split("/", 2)[2] for path in WRITTEN if path.split("/")[1] == language} for language in MADE}
    assert MADE["en"].keys() - own["en"] == MADE["ja"].keys() - own["ja"]


def test_every_code_is_of_one_family_and_has_a_page() -> None:
    for code in CODES:
        assert sum(code.startswith(family.starts) for family in FAMILIES) == 1
        for made in MADE.values():
            assert made[f"rules/{code}.md"].split("\n", 4)[3].startswith(f"# {code}: ")
            assert f"[{code}]({code}.md)" in made[f"rules/{family_of(code).name}.md"]


def test_every_command_option_format_and_exit_code_is_there() -> None:
    made = MADE["en"]
    assert {command.name.split()[0] for command in commands(app)} <= {Path(name).stem for name in made}
    for command in commands(app):
        page = made[f"commands/{command.name.split()[0]}.md"]
        for entry in (*command.arguments, *command.options):
            assert f"`{entry.names}`".replace("|", r"\|") in page
            assert entry.variable in page
    for word in (*Format, *(str(int(code)) for code in Exit)):
        assert f"| `{word}` |" in made["formats.md"]


def test_commands_in_written_pages_exist() -> None:
    names = {command.name.split()[0] for command in commands(app)}
    options = set(re.findall(r"--[a-z][a-z-]+", "".join(command_pages(Words("en")).values())))
    for name in WRITTEN:
        text = (ROOT / name).read_text("utf-8")
        assert set(re.findall(r"(?:^|`)ideepdoctor ([a-z][a-z-]+)", text, re.MULTILINE)) <= names, name
        spoken = re.findall(r"(?:^|`)ideepdoctor ([^`\n#]*)", text, re.MULTILINE)
        said = {option for line in spoken for option in re.findall(r"--[a-z][a-z-]+", line.partition(" -- ")[0])}
        assert said <= options, name


def test_paths_in_written_pages_exist() -> None:
    """Files of the repository that a page names, where it names one and no kind of them."""
    for name in WRITTEN:
        text = (ROOT / name).read_text("utf-8")
        for path in re.findall(
            r"(?<![\w/])((?:tests|docs|recipes|ideepdoctor|man)/[\w./-]+\.(?:py|sh|toml|md|1))", text
        ):
            if "idp999" not in path:
                assert (ROOT / path).exists(), (name, path)


def test_words_of_the_made_pages_are_translated_and_none_is_left_over() -> None:
    spoken: set[str] = set()

    class Listening(Words):
        def __call__(self, text: str) -> str:
            spoken.add(text)
            return super().__call__(text)

    from docs.generate import MAKERS

    for maker in MAKERS:
        maker(Listening("ja"))
    japanese = tomllib.loads((ROOT / "docs" / "words.ja.toml").read_text("utf-8"))
    english = tomllib.loads((ROOT / "docs" / "words.en.toml").read_text("utf-8"))
    assert spoken <= set(japanese)
    titles = [value for item in (*failures(), *checks()) for value in (item.title, *said_of(item))]
    man = [text for _, text in (*VARIABLES, *FILES)]
    assert set(japanese) - spoken - set(english) <= {*titles, *own().values(), *man}
    assert set(english) <= set(japanese)


def said_of(item: Failure | Check) -> tuple[str, ...]:
    return (item.outside, item.note) if isinstance(item, Failure) else ()


def test_codes_become_links_but_in_headings_programs_and_links() -> None:
    text = "# IDP305\n\nIDP305, IDP000 and `IDP305`\n\n```python\nIDP305\n```\n\n    IDP305\n\n[IDP305](x.md)\n"
    assert with_codes(text, frozenset({"IDP305"}), "rules/") == text.replace(
        "\nIDP305, ", "\n[IDP305](rules/IDP305.md), ", 1
    )


def test_texts_that_markdown_would_take_for_its_own() -> None:
    assert plain("<x> *.so __init__ `a*b` [c]") == r"\<x\> \*.so \_\_init\_\_ `a*b` \[c\]"
    assert literal("`np.sctypes` was removed") == "`` `np.sctypes` was removed ``"
