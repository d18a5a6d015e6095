"""The entrypoint of the images on made-up machines: it sets what the doctor would set there, or refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.model.facts import Limits
from ideepdoctor.recipes import docker, docker_build
from ideepdoctor.recipes.base import Recipe, settings_for
from ideepdoctor.recipes.render import render
from ideepdoctor.treatment.variables import AVX512_OF_MKL, recommended
from tests.treatment.sample import AMD, INTEL, facts

AVX2 = ("sse2", "avx", "avx2")
AVX512 = (*AVX2, *sorted(AVX512_OF_MKL))


class Machine:
    """A machine as files: what the script reads of /proc and /sys, and nproc."""

    def __init__(self, folder: Path, flags: Sequence[str], vendor: str, cpus: int, cores: int | None) -> None:
        self.folder = folder
        blocks = []
        for number in range(cpus):
            lines = [f"processor\t: {number}", f"vendor_id\t: {vendor}", f"flags\t\t: {' '.join(flags)}"]
            if cores is not None:  # half of the cores on each of two chips
                lines += [f"physical id\t: {number % cores % 2}", f"core id\t\t: {number % cores // 2}"]
            blocks.append("\n".join(lines) + "\n")
        (folder / "cpuinfo").write_text("\n".join(blocks))
        self.cgroup = folder / "cgroup"
        self.cgroup.mkdir()

    def run(
        self, recipe: Recipe, open_cpus: int, environ: Mapping[str, str] | None = None, stack: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        settings = settings_for(recipe, doctor_version="0.1.0", stack=stack)
        text = render(recipe, settings)["entrypoint.sh"]
        for place, ours in (("/proc/cpuinfo", "cpuinfo"), ("/sys/fs/cgroup", "cgroup"), ("/opt/ideep", "ideep")):
            text = text.replace(place, str(self.folder / ours))
        script = self.folder / "entrypoint.sh"
        script.write_text(text)
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "nproc").write_text(f"#!/bin/sh\necho {open_cpus}\n")
        (programs / "nproc").chmod(0o755)
        env = {"PATH": f"{programs}:{os.environ['PATH']}", **(environ or {})}
        show = 'printf "%s|%s|%s" "${OMP_NUM_THREADS-}" "${MKL_DEBUG_CPU_TYPE-}" "$*"'
        return subprocess.run(
            [shutil.which("dash") or "sh", str(script), "sh", "-c", show, "sh", "a b", "c"],
            env=env,
            capture_output=True,
            text=True,
            timeout=30,
        )


@pytest.mark.parametrize(
    ("open_cpus", "quota", "cores", "logical"),
    [
        (4, None, 4, 4),
        (4, 4.0, 4, 4),
        (4, 2.5, 4, 4),
        (4, 0.1, 4, 4),
        (8, None, 4, 8),
        (8, 6.0, 4, 8),
        (8, 2.0, 4, 8),
        (4, None, 4, 8),
        (6, None, 4, 6),
        (4, 1.5, None, 4),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_the_threads_are_those_that_the_doctor_recommends(tmp_path, open_cpus, quota, cores, logical, version):
    machine = Machine(tmp_path, AVX2, "GenuineIntel", logical, cores)
    numbers = ("max" if version == 2 else -1) if quota is None else round(quota * 100000)
    if version == 2:
        (machine.cgroup / "cpu.max").write_text(f"{numbers} 100000\n")
    else:
        (machine.cgroup / "cpu").mkdir()
        (machine.cgroup / "cpu" / "cpu.cfs_quota_us").write_text(f"{numbers}\n")
        (machine.cgroup / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    told = facts(
        cpu=replace(INTEL, physical_cores=cores, logical_cpus=logical),
        limits=Limits(affinity_cpus=tuple(range(open_cpus)), quota_cpus=quota),
    )
    wanted = next((item.value for item in recommended(told) if item.name == "OMP_NUM_THREADS"), str(open_cpus))
    done = machine.run(docker.RECIPE, open_cpus)
    assert (done.stdout, done.stderr) == (f"{wanted}||a b c", "")


@pytest.mark.parametrize("flags", [AVX512, (*AVX2, *sorted(AVX512_OF_MKL)[1:]), AVX2, ("sse2", "avx")])
@pytest.mark.parametrize("cpu", [AMD, INTEL], ids=["amd", "intel"])
def test_mkl_takes_the_code_that_the_doctor_recommends(tmp_path, cpu, flags):
    wanted = {item.name: item.value for item in recommended(facts(cpu=replace(cpu, cpuinfo_flags=flags)))}
    done = Machine(tmp_path, flags, cpu.vendor, 4, 4).run(docker.RECIPE, 4)
    assert done.stdout == f"4|{wanted.get('MKL_DEBUG_CPU_TYPE', '')}|a b c"


def test_what_is_set_stays(tmp_path):
    given = {"OMP_NUM_THREADS": "3", "MKL_DEBUG_CPU_TYPE": "5"}
    done = Machine(tmp_path, AVX512, "AuthenticAMD", 8, 8).run(docker.RECIPE, 8, given)
    assert done.stdout == "3|5|a b c"


@pytest.mark.parametrize(
    ("recipe", "stack", "flags", "vendor", "said"),
    [
        (docker.RECIPE, None, ("sse2",), "GenuineIntel", "needs avx,"),
        (docker.RECIPE, None, ("sse2", "avx2"), "GenuineIntel", "needs avx,"),
        (docker.RECIPE, "chainer4.0.0b4-ideep4py1.0.3", AVX2, "AuthenticAMD", "GenuineIntel processors only"),
        (docker_build.RECIPE, None, ("sse2", "avx"), "GenuineIntel", "needs fma,"),
    ],
)
def test_a_processor_that_cannot_run_it_is_refused_by_name(tmp_path, recipe, stack, flags, vendor, said):
    machine = Machine(tmp_path, flags, vendor, 4, 4)
    (tmp_path / "ideep").mkdir()
    (tmp_path / "ideep" / "cpu_flags").write_text("avx fma\n")
    done = machine.run(recipe, 4, stack=stack)
    assert (done.returncode, done.stdout) == (69, "")
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_a_stack_for_intel_starts_on_intel_and_an_unknown_processor_is_not_judged(tmp_path):
    (tmp_path / "a").mkdir()
    done = Machine(tmp_path / "a", AVX2, "GenuineIntel", 2, 2).run(
        docker.RECIPE, 2, stack="chainer4.0.0b4-ideep4py1.0.3"
    )
    assert (done.returncode, done.stdout) == (0, "2||a b c")
    (tmp_path / "b").mkdir()
    unknown = Machine(tmp_path / "b", AVX2, "GenuineIntel", 2, 2)
    (tmp_path / "b" / "cpuinfo").write_text("")
    assert unknown.run(docker.RECIPE, 2).stdout == "2||a b c"
