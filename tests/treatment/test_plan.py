from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.facts import AlteredFile, Guard, Variables
from ideepdoctor.model.findings import Finding, FixSafety, Judgement, Severity
from ideepdoctor.model.plan import (
    CreateEnv,
    DisableLine,
    EditBlock,
    Install,
    RenameFile,
    Requirement,
    SetRpath,
    WriteFile,
)
from ideepdoctor.stacks.catalog import choose
from ideepdoctor.treatment import plan
from tests.treatment.sample import AMD, INTEL, SITE, facts

STACK, LOCK = choose("cp37m", INTEL)
PINNED = {item.name: item.version for item in LOCK.requirements}


def install_of(steps) -> Install:
    (found,) = (step for step in steps if isinstance(step, Install))
    return found


def names(step: Install) -> list[str]:
    return [item.name for item in step.requirements]


class TestSetup:
    def test_environment_then_packages_then_startup_files(self):
        made = plan.setup_plan(facts(cpu=AMD), STACK, LOCK, "/new", "/usr/bin/python3.7", "/new/lib/site")
        create, install, guard, module, pth = made.steps
        assert create == CreateEnv("/new", "/usr/bin/python3.7", "uv")
        assert (install.python, install.tool, install.requirements) == ("/new/bin/python", "uv", LOCK.requirements)
        assert install.size_bytes == LOCK.installed_bytes > 200_000_000
        assert install.snapshot == ()
        assert set(install.first) == {"setuptools", "wheel"} <= set(PINNED)
        assert module.path.startswith("/new/lib/site/") and "MKL_DEBUG_CPU_TYPE" in module.content
        assert guard.path == "/new/lib/site/_ideepdoctor_guard.py" and "GUARD = True" in module.content
        assert pth.path == "/new/lib/site/ideepdoctor.pth"

    def test_what_uv_refuses_is_made_by_virtualenv_and_installed_by_pip(self):
        stack, lock = choose("cp27mu", INTEL)
        made = plan.setup_plan(facts(abi="cp27mu"), stack, lock, "/new", "/usr/bin/python2.7", "/new/lib/site")
        assert made.steps[0].tool == "virtualenv"
        assert made.steps[1].tool == "pip"


class TestInPlace:
    def test_only_what_differs_is_installed_with_a_snapshot_of_the_folders(self):
        there = {**PINNED, "numpy": "1.15.4", "unrelated": "1.0"}
        made = plan.in_place_plan(facts(packages=there), STACK, LOCK)
        install = install_of(made.steps)
        assert names(install) == ["numpy"]
        assert install.requirements[0] == LOCK.requirement("numpy")
        assert install.snapshot == (SITE, "/env/bin")
        assert install.python == "/env/bin/python"
        assert [type(step) for step in made.steps] == [Install, WriteFile, WriteFile, WriteFile]

    def test_altered_files_are_installed_anew(self):
        given = facts(packages=PINNED)
        broken = replace(given.package("ideep4py"), altered=(AlteredFile("lib/libiomp5.so", "size", "1", "0"),))
        given = replace(given, packages=(*(item for item in given.packages if item.name != "ideep4py"), broken))
        install = install_of(plan.in_place_plan(given, STACK, LOCK).steps)
        assert names(install) == ["ideep4py"]
        assert install.reinstall == ("ideep4py",)

    def test_a_pip_that_is_there_stays_as_it_is(self):
        assert not [
            step
            for step in plan.in_place_plan(facts(packages={**PINNED, "pip": "19.0"}), STACK, LOCK).steps
            if isinstance(step, Install)
        ]
        without = {name: version for name, version in PINNED.items() if name != "pip"}
        assert names(install_of(plan.in_place_plan(facts(packages=without), STACK, LOCK).steps)) == ["pip"]

    def test_nothing_is_to_be_done_where_all_is_so_already(self):
        set_up = Variables(effective={"CHAINER_USE_IDEEP": "auto"}, set_by_doctor=("CHAINER_USE_IDEEP",))
        given = facts(packages=PINNED, variables=set_up, guard=Guard(choice=True, path="/g", current=True))
        assert plan.in_place_plan(given, STACK, LOCK).steps == ()

    @pytest.mark.parametrize(
        "state",
        [
            Variables(),
            Variables(effective={"CHAINER_USE_IDEEP": "auto"}),
            Variables(effective={"CHAINER_USE_IDEEP": "never"}, set_by_doctor=("CHAINER_USE_IDEEP",)),
        ],
    )
    def test_startup_files_are_written_where_they_do_not_hold(self, state):
        steps = plan.in_place_plan(facts(packages=PINNED, variables=state), STACK, LOCK).steps
        assert [type(step) for step in steps] == [WriteFile, WriteFile, WriteFile]

    @pytest.mark.parametrize(
        ("there", "asked", "left"),
        [
            (Guard(), None, True),
            (None, None, True),
            (Guard(choice=True, current=False), None, True),
            (Guard(choice=False), None, None),
            (Guard(choice=False), False, None),
            (Guard(choice=True, current=True), False, False),
            (Guard(choice=True, current=True), None, None),
        ],
    )
    def test_the_guard_is_left_there_unless_somebody_does_not_want_it(self, there, asked, left):
        set_up = Variables(effective={"CHAINER_USE_IDEEP": "auto"}, set_by_doctor=("CHAINER_USE_IDEEP",))
        given = facts(packages=PINNED, variables=set_up, guard=there)
        steps = plan.in_place_plan(given, STACK, LOCK, guard=asked).steps
        said = {None: [], True: ["GUARD = True"], False: ["GUARD = False"]}[left]
        texts = "".join(step.content for step in steps if step.path.endswith("_startup.py"))
        assert [line for line in texts.splitlines() if line.startswith("GUARD")] == said
        assert any(step.path.endswith("_ideepdoctor_guard.py") for step in steps) is (left is True)

    def test_a_managed_interpreter_is_refused_with_the_way_out(self):
        with pytest.raises(NotPossibleHere, match="managed by its system") as caught:
            plan.in_place_plan(facts(externally_managed="/usr/lib/python3.7/EXTERNALLY-MANAGED"), STACK, LOCK)
        assert "ideepdoctor setup" in caught.value.hint

    def test_an_interpreter_with_another_abi_is_refused(self):
        with pytest.raises(NotPossibleHere, match="cp36m"):
            plan.in_place_plan(facts(abi="cp36m"), STACK, LOCK)


class TestInstall:
    def test_chainer_brings_what_it_is_built_with(self):
        made = plan.install_plan(facts(packages={"numpy": "1.15.4"}), LOCK, ["chainer"])
        assert names(install_of(made.steps)) == ["chainer", "setuptools", "wheel"]

    def test_a_chainer_that_is_there_brings_nothing(self):
        assert plan.install_plan(facts(packages=PINNED | {"setuptools": "1"}), LOCK, ["chainer"]).steps == ()

    def test_a_name_that_the_lock_lacks_is_refused(self):
        with pytest.raises(UsageError, match="cupy"):
            plan.install_plan(facts(), LOCK, ["cupy", "numpy"])


def finding(code: str, severity: Severity = Severity.ERROR, fix: FixSafety = FixSafety.SAFE) -> Finding:
    return Finding(code, severity, "title", "found", "needed", "consequence", "next", fix=fix)


def pin(name: str, version: str, digest: str = "0") -> Requirement:
    return Requirement(name, version, (digest * 64,))


def installing(*pins: Requirement, python: str = "/env/bin/python", snapshot: str = "/env/lib") -> Install:
    return Install(python, pins, "uv", snapshot=(snapshot,))


class TestGuard:
    """What brings releases that the guard corrects brings the guard."""

    def startup(self, steps) -> str:
        return "".join(step.content for step in steps if isinstance(step, WriteFile) and "_startup" in step.path)

    @pytest.mark.parametrize(
        ("packages", "names", "comes"),
        [
            ({"chainer": "7.8.1"}, ["ideep4py", "numpy"], True),
            ({"ideep4py": "2.0.0.post3"}, ["chainer"], True),
            ({"chainer": "7.8.1", "ideep4py": "2.0.0.post3"}, ["numpy"], False),
            ({}, ["numpy"], False),
            ({"chainer": "5.0.0b4"}, ["ideep4py"], False),
        ],
    )
    def test_with_the_releases_that_an_installation_leads_to(self, packages, names, comes):
        given = facts(packages=packages, guard=Guard())
        steps = plan.install_plan(given, LOCK, names).steps
        assert ("GUARD = True" in self.startup(steps)) == comes
        assert [type(step) for step in steps] == [Install] + [WriteFile] * (3 if comes else 0)

    def test_not_where_it_holds_or_was_disabled(self):
        for guard in (Guard(choice=False), Guard(choice=True, path="/g", current=True)):
            steps = plan.install_plan(facts(packages={"chainer": "7.8.1"}, guard=guard), LOCK, ["ideep4py"]).steps
            assert [type(step) for step in steps] == [Install]


class TestMerge:
    def test_one_installation_per_interpreter_then_the_files(self):
        file, block = WriteFile("/site/a.pth", "x", "why"), EditBlock("/rc", "x", "why")
        merged = plan.merge(
            "fix",
            [
                (finding("IDP501"), (block, file)),
                (finding("IDP305"), (installing(pin("numpy", "2", "a")),)),
                (finding("IDP301"), (installing(pin("numpy", "2", "b"), pin("ideep4py", "1")),)),
                (finding("IDP301"), (installing(pin("six", "1"), python="/other/bin/python"),)),
                (finding("IDP502"), (file,)),
            ],
        )
        first, second, *rest = merged.steps
        assert first == installing(pin("ideep4py", "1"), Requirement("numpy", "2", ("a" * 64, "b" * 64)))
        assert second.python == "/other/bin/python"
        assert rest == [file, block]
        assert merged.treats == ("IDP501", "IDP305", "IDP301", "IDP502")

    def test_of_two_versions_the_more_important_finding_wins_and_the_other_is_left_whole(self):
        merged = plan.merge(
            "fix",
            [
                (finding("IDP303"), (installing(pin("ideep4py", "2")),)),
                (finding("IDP305"), (installing(pin("ideep4py", "1"), pin("numpy", "1")), WriteFile("/a", "x", "why"))),
            ],
        )
        assert merged.steps == (installing(pin("ideep4py", "2")),)
        assert merged.treats == ("IDP303",)

    def test_of_two_contents_the_more_important_finding_wins(self):
        one, other = WriteFile("/a", "1", "why"), WriteFile("/a", "2", "why")
        assert plan.merge("fix", [(finding("A"), (one,)), (finding("B"), (other,))]).steps == (one,)
        here, there = EditBlock("/rc", "1", "why"), EditBlock("/rc", "2", "why")
        assert plan.merge("fix", [(finding("A"), (here,)), (finding("B"), (there,))]).steps == (here,)

    def test_libraries_come_after_packages_and_before_the_users_files(self):
        block, file = EditBlock("/rc", "x", "why"), WriteFile("/site/a.pth", "x", "why")
        lines = DisableLine("/rc", 7, "b", "why"), DisableLine("/rc", 2, "a", "why")
        rpath, away = SetRpath("/site/a.so", "$ORIGIN/lib", "why"), RenameFile("/site/b.so", "why")
        package = installing(pin("numpy", "2"))
        given = [(finding(f"F{at}"), (step,)) for at, step in enumerate((block, *lines, file, rpath, away, package))]
        assert plan.merge("fix", given).steps == (package, away, rpath, file, *lines, block)

    def test_what_two_findings_want_alike_is_done_once(self):
        steps = (RenameFile("/b.so", "one"), SetRpath("/a.so", "$ORIGIN", "one"), DisableLine("/rc", 2, "a", "one"))
        again = (RenameFile("/b.so", "two"), SetRpath("/a.so", "$ORIGIN", "two"), DisableLine("/rc", 2, "a", "two"))
        merged = plan.merge("fix", [(finding("A"), steps), (finding("B"), again)])
        assert merged.steps == steps
        assert merged.treats == ("A", "B")

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (RenameFile("/a.so", "why"), RenameFile("/a.so", "why", ".other")),
            (SetRpath("/a.so", "$ORIGIN", "why"), SetRpath("/a.so", "$ORIGIN/lib", "why")),
            (DisableLine("/rc", 1, "a", "why"), DisableLine("/rc", 1, "b", "why")),
            (SetRpath("/a.so", "$ORIGIN", "why"), RenameFile("/a.so", "why")),
            (RenameFile("/a.so", "why"), SetRpath("/a.so", "$ORIGIN", "why")),
            (RenameFile("/a.so", "why"), WriteFile("/a.so", "x", "why")),
            (RenameFile("/a.so", "why"), WriteFile("/a.so.disabled-by-ideepdoctor", "x", "why")),
            (WriteFile("/rc", "x", "why"), DisableLine("/rc", 1, "a", "why")),
            (DisableLine("/rc", 1, "a", "why"), WriteFile("/rc", "x", "why")),
            (WriteFile("/rc", "x", "why"), EditBlock("/rc", "x", "why")),
        ],
    )
    def test_of_two_deeds_that_exclude_each_other_the_more_important_is_done(self, one, other):
        merged = plan.merge("fix", [(finding("A"), (one,)), (finding("B"), (other, WriteFile("/b", "x", "why")))])
        assert merged.steps == (one,)
        assert merged.treats == ("A",)

    def test_a_finding_without_steps_is_not_called_treated(self):
        assert plan.merge("fix", [(finding("IDP101"), ())]).treats == ()


class TestFix:
    @pytest.fixture(autouse=True)
    def rules(self, monkeypatch):
        def rule(code: str, step: WriteFile):
            made = SimpleNamespace(code=lambda: code)

            class Made:
                code = staticmethod(made.code)

                def treat(self, found, given):
                    assert given.target.python == "/env/bin/python"
                    return (step,)

            return Made

        table = tuple(rule(code, WriteFile(f"/{code}", "x", "why")) for code in ("SAFE", "UNSAFE", "MANUAL"))
        monkeypatch.setitem(sys.modules, "ideepdoctor.rules", SimpleNamespace(RULES=table))

    @pytest.mark.parametrize(("unsafe", "treated"), [(False, ("SAFE",)), (True, ("SAFE", "UNSAFE"))])
    def test_only_what_may_be_done_is_planned(self, unsafe, treated):
        found = tuple(finding(code, fix=FixSafety(code.lower())) for code in ("SAFE", "UNSAFE", "MANUAL"))
        made = plan.fix_plan(facts(), Judgement(findings=found), unsafe=unsafe)
        assert made.treats == treated
        assert [step.path for step in made.steps] == [f"/{code}" for code in treated]

    def test_nothing_is_written_into_a_managed_interpreter(self):
        managed = facts(externally_managed="/usr/lib/python3.7/EXTERNALLY-MANAGED")
        assert plan.fix_plan(managed, Judgement()).steps == ()
        with pytest.raises(NotPossibleHere, match="managed by its system"):
            plan.fix_plan(managed, Judgement(findings=(finding("SAFE"),)))

    def test_lines_of_the_user_are_edited_whoever_manages_the_interpreter(self, monkeypatch):
        class Rule:
            code = staticmethod(lambda: "SAFE")

            def treat(self, found, given):
                return (DisableLine("/rc", 1, "export LD_PRELOAD=x", "why"),)

        monkeypatch.setitem(sys.modules, "ideepdoctor.rules", SimpleNamespace(RULES=(Rule,)))
        made = plan.fix_plan(facts(externally_managed="/marker"), Judgement(findings=(finding("SAFE"),)))
        assert [type(step) for step in made.steps] == [DisableLine]

    def test_a_finding_may_be_less_safe_than_its_rule(self):
        found = (finding("SAFE", fix=FixSafety.MANUAL),)
        assert plan.fix_plan(facts(), Judgement(findings=found), unsafe=True).steps == ()
