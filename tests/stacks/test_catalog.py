from __future__ import annotations

import re
from dataclasses import replace

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.facts import Cpu
from ideepdoctor.model.plan import Requirement
from ideepdoctor.stacks import catalog
from ideepdoctor.stacks.catalog import all_stacks, choose, lock_for_build, nearest, with_built
from tests.stacks.wanted import ABIS, WANTED

AVX2 = ("avx", "avx2", "sse2")
CPUS = {
    "amd": Cpu(vendor="AuthenticAMD", cpuinfo_flags=AVX2),
    "intel": Cpu(vendor="GenuineIntel", cpuinfo_flags=AVX2),
    "old intel": Cpu(vendor="GenuineIntel", cpuinfo_flags=("sse2",)),
    "old amd": Cpu(vendor="AuthenticAMD", cpuinfo_flags=("sse2",)),
    "arm": Cpu(vendor="ARM", cpuinfo_flags=("asimd",)),
    "unknown": Cpu(),
}
NEW, SIX, FIVE, FOUR, TALK = (
    "chainer7.8.1-ideep4py2.0.0.post3",
    "chainer6.7.0-ideep4py2.0.0.post3",
    "chainer5.4.0-ideep4py2.0.0.post3",
    "chainer4.5.0-ideep4py1.0.4",
    "chainer4.0.0b4-ideep4py1.0.3",
)
LOCKS = [pytest.param(lock, id=f"{lock.stack}-{lock.python}") for stack in all_stacks() for lock in stack.locks]


def test_the_stacks_best_first():
    assert [stack.name for stack in all_stacks()] == [NEW, SIX, FIVE, FOUR, TALK]


def test_the_files_are_what_the_script_would_lock():
    known = {stack.name: stack for stack in all_stacks()}
    assert set(known) == {wanted.name for wanted in WANTED}
    for wanted in WANTED:
        stack = known[wanted.name]
        assert (stack.known, stack.cpu_flags, stack.cpu_vendor) == (wanted.known, wanted.cpu_flags, wanted.cpu_vendor)
        assert [lock.python for lock in stack.index_locks] == list(wanted.pythons)
        assert [lock.python for lock in stack.locks if lock.built] == list(wanted.built)
        for lock in stack.locks:
            assert {item.name: item.version for item in lock.requirements} == wanted.pins(lock.python)
            assert lock.abis == ABIS[lock.python]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_lock_is_pinned_by_well_formed_hashes_under_normal_names(lock):
    names = [item.name for item in lock.requirements]
    assert names == sorted(set(names))
    for item in lock.requirements:
        assert item.name == canonicalize_name(item.name)
        assert str(Version(item.version)) == item.version
        assert item.sha256 and len(set(item.sha256)) == len(item.sha256)
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in item.sha256)
    assert {"chainer", "numpy", "protobuf", "six", "filelock", "pip", "setuptools", "wheel"} <= set(names)
    assert lock.built == (() if "ideep4py" in names else ("ideep4py",))
    # A binary wheel has one hash per ABI, everything else one.
    assert {len(item.sha256) for item in lock.requirements} == {1, len(lock.abis)}
    assert len(lock.requirement("numpy").sha256) == len(lock.abis)
    assert lock.built or len(lock.requirement("ideep4py").sha256) == len(lock.abis)
    assert len(lock.requirement("chainer").sha256) == 1


@pytest.mark.parametrize("lock", LOCKS)
def test_every_lock_says_how_it_is_installed_how_large_it_is_and_what_was_run(lock):
    assert lock.installer == ("virtualenv" if lock.python in ("2.7", "3.5") else "uv")
    if lock.built:
        assert 15e6 < lock.download_bytes < 30e6
        assert 70e6 < lock.installed_bytes < 110e6
        assert "pip check; Chainer on NumPy" in lock.proved and f"CPython {lock.python}." in lock.proved
        assert lock.proved.endswith("without ideep4py")
        assert bool(lock.known) == (Version(lock.requirement("numpy").version) >= Version("1.24"))
        return
    assert 60e6 < lock.download_bytes < 80e6
    if lock.tried:
        assert 240e6 < lock.installed_bytes < 300e6
        assert "pip check" in lock.proved and f"CPython {lock.python}." in lock.proved
    else:
        assert lock.python == "3.5" and lock.installed_bytes == 0


def test_one_file_has_one_hash_in_all_locks():
    seen: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for stack in all_stacks():
        for lock in stack.locks:
            for item in lock.requirements:
                assert seen.setdefault((item.name, item.version, lock.python), item.sha256) == item.sha256


@pytest.mark.parametrize(
    ("cpu", "abi", "expected"),
    [
        *((cpu, abi, NEW) for cpu in ("amd", "intel", "unknown") for abi in ("cp37m", "cp36m", "cp35m")),
        *((cpu, abi, SIX) for cpu in ("amd", "intel", "unknown") for abi in ("cp27mu", "cp27m")),
        *((cpu, abi, FOUR) for cpu in ("old intel", "old amd") for abi in ("cp36m", "cp27mu", "cp27m")),
        *((cpu, abi, None) for cpu in ("old intel", "old amd") for abi in ("cp37m", "cp35m")),
        *((cpu, abi, None) for cpu in CPUS for abi in ("cp34m", "cp38", "cp311", "pypy37_pp73", "")),
        *(("arm", abi, None) for abi in ("cp37m", "cp36m", "cp35m", "cp27mu")),
    ],
)
def test_the_default_is_the_newest_that_is_right_here(cpu, abi, expected):
    if expected is None:
        assert nearest(abi, CPUS[cpu], None) is None
        with pytest.raises(NotPossibleHere) as caught:
            choose(abi, CPUS[cpu])
        assert caught.value.message and caught.value.hint
        return
    stack, lock = choose(abi, CPUS[cpu])
    assert stack.name == lock.stack == expected
    assert abi in lock.abis
    assert nearest(abi, CPUS[cpu], None) == (stack, lock)


class TestTheTalksStack:
    def test_it_is_given_on_intel(self):
        for words in ({"name": TALK}, {"chainer": "4.0.0b4"}, {"ideep4py": "1.0.3"}, {"chainer": "4.0.0.beta4"}):
            assert choose("cp36m", CPUS["intel"], **words)[0].name == TALK
        assert choose("cp36m", CPUS["old intel"], name=TALK)[0].name == TALK

    @pytest.mark.parametrize("cpu", ["amd", "old amd", "unknown"])
    def test_it_is_refused_elsewhere_with_the_reason_and_the_nearest(self, cpu):
        for words in ({"name": TALK}, {"chainer": "4.0.0b4"}, {"ideep4py": "1.0.3"}):
            with pytest.raises(NotPossibleHere, match=r"GenuineIntel.*Xbyak::Error") as caught:
                choose("cp36m", CPUS[cpu], **words)
            assert f"--stack {FOUR}" in caught.value.hint
            assert "--python" not in caught.value.hint

    def test_the_processor_is_the_reason_even_where_the_interpreter_is_another(self):
        with pytest.raises(NotPossibleHere, match=r"GenuineIntel.*Xbyak::Error") as caught:
            choose("cp37m", CPUS["amd"], name=TALK)
        assert f"--stack {FIVE}" in caught.value.hint

    def test_under_emulation_the_vendor_that_the_facts_name_counts(self):
        cpu = replace(CPUS["intel"], emulated=True, cpuid_flags=AVX2)
        assert choose("cp36m", cpu, name=TALK)[0].name == TALK


class TestRefusals:
    @pytest.mark.parametrize(
        "words", [{"name": "chainer8"}, {"chainer": "5.0.0"}, {"ideep4py": "2.0.0"}, {"chainer": "nonsense"}]
    )
    def test_what_is_not_known_names_what_is(self, words):
        with pytest.raises(UsageError) as caught:
            choose("cp37m", CPUS["amd"], **words)
        assert next(iter(words.values())) in caught.value.message
        assert all(stack.name in caught.value.hint for stack in all_stacks())

    def test_a_pair_that_is_not_right_is_not_known(self):
        with pytest.raises(UsageError, match=r"Chainer 7\.8\.1 and ideep4py 1\.0\.4"):
            choose("cp36m", CPUS["amd"], chainer="7.8.1", ideep4py="1.0.4")

    def test_a_name_and_another_version_contradict_each_other(self):
        with pytest.raises(UsageError, match=r"does not have Chainer 6\.7\.0"):
            choose("cp37m", CPUS["amd"], name=NEW, chainer="6.7.0")

    def test_another_interpreter_is_named_where_that_helps(self):
        with pytest.raises(NotPossibleHere, match=r"locked for Python 3\.6 or 2\.7, not for the ABI cp37m") as caught:
            choose("cp37m", CPUS["amd"], ideep4py="1.0.4")
        assert "use Python 3.6 or 2.7 (--python)" in caught.value.hint
        assert f"--stack {FIVE}" in caught.value.hint

    def test_chainer_7_on_python_2_names_the_newest_that_runs_there(self):
        with pytest.raises(NotPossibleHere, match=r"3\.7, 3\.6 or 3\.5") as caught:
            choose("cp27mu", CPUS["amd"], chainer="7.8.1")
        assert f"--stack {SIX}" in caught.value.hint

    def test_a_processor_without_avx_is_offered_the_release_that_does_without(self):
        with pytest.raises(NotPossibleHere, match="needs AVX") as caught:
            choose("cp36m", CPUS["old amd"], name=NEW)
        assert f"--stack {FOUR}" in caught.value.hint

    def test_a_processor_without_avx_and_python_37_is_sent_to_36(self):
        with pytest.raises(NotPossibleHere, match="needs AVX") as caught:
            choose("cp37m", CPUS["old amd"])
        assert "use Python 3.6 or 2.7 (--python)" in caught.value.hint
        assert "--stack" not in caught.value.hint

    def test_a_new_python_gets_one_sentence(self):
        with pytest.raises(NotPossibleHere) as caught:
            choose("cp311", CPUS["amd"])
        assert caught.value.message.count("cp311") == 1
        assert "use Python 3.7, 3.6, 3.5 or 2.7 (--python)" in caught.value.hint


@pytest.mark.parametrize(
    ("chainer", "abi", "cpu", "expected"),
    [
        ("7.8.1", "cp37m", "amd", NEW),
        ("7.0.0", "cp37m", "amd", NEW),
        ("6.7.0", "cp37m", "amd", SIX),
        ("6.1.0", "cp36m", "amd", SIX),
        ("5.0.0", "cp36m", "amd", FIVE),
        ("4.5.0", "cp36m", "amd", FOUR),
        ("4.0.0b4", "cp36m", "intel", TALK),
        ("4.0.0b4", "cp36m", "amd", FOUR),
        ("4.5.0", "cp37m", "amd", FIVE),
        ("3.5.0", "cp36m", "amd", FOUR),
        ("7.8.1", "cp27mu", "amd", None),
        ("8.0.0", "cp37m", "amd", None),
        ("7.8.1", "cp36m", "old amd", None),
        ("nonsense", "cp37m", "amd", None),
    ],
)
def test_the_nearest_keeps_chainer_or_goes_up(chainer, abi, cpu, expected):
    found = nearest(abi, CPUS[cpu], chainer)
    assert (found and found[0].name) == expected


def test_the_nearest_keeps_ideep4py_where_it_has_the_choice():
    assert nearest("cp36m", CPUS["amd"], None, "1.0.4")[0].name == FOUR
    assert nearest("cp36m", CPUS["amd"], None, "9")[0].name == NEW
    assert nearest("cp36m", CPUS["amd"], "6.7.0", "1.0.4")[0].name == SIX


def test_of_two_with_the_same_chainer_the_nearest_has_the_users_ideep4py(monkeypatch):
    newer, older = choose("cp36m", CPUS["amd"])[0], choose("cp36m", CPUS["amd"], name=SIX)[0]
    older = replace(older, chainer=newer.chainer, ideep4py="1.0.4")
    monkeypatch.setattr(catalog, "all_stacks", lambda: (newer, older))
    assert nearest("cp36m", CPUS["amd"], newer.chainer)[0] is newer
    assert nearest("cp36m", CPUS["amd"], newer.chainer, "1.0.4")[0] is older


MODERN = ("cp313", "cp312", "cp311", "cp310", "cp39", "cp38")


class TestPythonsThatItIsBuiltFor:
    @pytest.mark.parametrize("abi", MODERN)
    def test_nothing_is_given_for_them_unless_asked(self, abi):
        for cpu in CPUS.values():
            assert nearest(abi, cpu, None) is None
            with pytest.raises(NotPossibleHere):
                choose(abi, cpu)
        assert all(stack.lock_for(abi) is None for stack in all_stacks())
        stack, lock = choose(abi, CPUS["amd"], built=True)
        assert (stack.name, lock.abis, lock.built) == (NEW, (abi,), ("ideep4py",))

    def test_asking_changes_nothing_where_the_index_has_one(self):
        assert choose("cp37m", CPUS["amd"], built=True) == choose("cp37m", CPUS["amd"])

    @pytest.mark.parametrize("abi", [*MODERN, "cp37m", "cp36m", "cp35m"])
    def test_the_lock_for_a_build_has_no_ideep4py_and_waits_for_it(self, abi):
        stack, lock = lock_for_build(abi, None)
        assert stack.name == lock.stack == NEW and abi in lock.abis
        assert lock.requirement("ideep4py") is None and lock.built == ("ideep4py",)
        assert lock.requirement("chainer").version == "7.8.1"

    @pytest.mark.parametrize(
        ("abi", "chainer", "expected"),
        [
            ("cp27mu", None, SIX),
            ("cp38", "6.7.0", SIX),
            ("cp311", "5.4.0", FIVE),
            ("cp36m", "4.5.0", FOUR),
            ("cp36m", "4.0.0b4", TALK),
        ],
    )
    def test_of_another_chainer(self, abi, chainer, expected):
        stack, lock = lock_for_build(abi, chainer)
        assert stack.name == expected and lock.built == ("ideep4py",)

    def test_what_cannot_be_says_what_can(self):
        with pytest.raises(NotPossibleHere, match=r"Chainer 6\.7\.0 .* cp311") as caught:
            lock_for_build("cp311", "6.7.0")
        assert caught.value.hint.splitlines() == [
            "use Python 3.8, 3.7, 3.6 or 2.7 (--python)",
            "with this interpreter: --chainer 7.8.1 or 5.4.0",
        ]
        with pytest.raises(NotPossibleHere, match="cp34m"):
            lock_for_build("cp34m", None)
        with pytest.raises(UsageError, match=r"Chainer 7\.0\.0"):
            lock_for_build("cp311", "7.0.0")

    def test_with_what_was_built_it_is_whole(self):
        lock = lock_for_build("cp311", None)[1]
        wheel = Requirement("ideep4py", "2.0.0.post3+doctor.v3", ("0" * 64,))
        whole = with_built(lock, wheel)
        assert whole.built == () and whole.requirement("ideep4py") is wheel
        names = [item.name for item in whole.requirements]
        assert names == sorted(names) and len(names) == len(lock.requirements) + 1
        for other in (whole, choose("cp37m", CPUS["amd"])[1]):
            with pytest.raises(ValueError, match="does not wait for ideep4py"):
                with_built(other, wheel)
        with pytest.raises(ValueError, match="does not wait for numpy"):
            with_built(lock, Requirement("numpy", "1.23.5", ("0" * 64,)))

    def test_locks_of_the_index_lose_their_own_ideep4py_alone(self):
        whole, stripped = choose("cp37m", CPUS["amd"])[1], lock_for_build("cp37m", None)[1]
        assert set(whole.requirements) - set(stripped.requirements) == {whole.requirement("ideep4py")}


def test_a_file_that_lacks_a_key_is_an_error():
    with pytest.raises(KeyError):
        catalog.stack_from_toml({"name": "x"})
