"""What programs see under a setting: neither a start-up file nor an older profile decides."""

from __future__ import annotations

from dataclasses import replace

from ideepdoctor.commands.tune_environ import TunedEnviron
from ideepdoctor.model.facts import Profile, TunedVariable, Variables
from ideepdoctor.proof.tune_space import DEFAULT, Option
from tests.treatment.sample import AMD, INTEL, facts

UNSET = DEFAULT.with_option(Option("mkl", "unset", (("MKL_DEBUG_CPU_TYPE", ""),)))


def test_the_defaults_hold_where_a_setting_says_nothing():
    environ = TunedEnviron({"PATH": "/bin"}, facts(cpu=AMD))
    assert environ.variables(DEFAULT) == {"CHAINER_USE_IDEEP": "auto", "MKL_DEBUG_CPU_TYPE": "5"}
    assert environ.whole(DEFAULT) == {"PATH": "/bin", "CHAINER_USE_IDEEP": "auto", "MKL_DEBUG_CPU_TYPE": "5"}
    assert environ.variables(UNSET)["MKL_DEBUG_CPU_TYPE"] == ""
    assert TunedEnviron({}, facts(cpu=INTEL)).variables(DEFAULT) == {"CHAINER_USE_IDEEP": "auto"}


def test_what_an_older_profile_sets_is_neutral():
    names = ("KMP_AFFINITY", "KMP_BLOCKTIME", "OMP_NUM_THREADS", "LD_PRELOAD")
    rows = tuple(TunedVariable(name, "x", "why", name == "LD_PRELOAD") for name in names)
    held = replace(facts(cpu=INTEL), profile=Profile("/x", cpu="other", cpus=64, variables=rows))
    assert TunedEnviron({}, held).variables(DEFAULT) == {
        "CHAINER_USE_IDEEP": "auto",
        "KMP_AFFINITY": "none",
        "KMP_BLOCKTIME": "200",
        "OMP_NUM_THREADS": "4",
    }


def test_what_the_user_has_set_is_left_alone():
    own = Variables(inherited={"MKL_DEBUG_CPU_TYPE": "4"}, effective={"MKL_DEBUG_CPU_TYPE": "4"})
    environ = TunedEnviron({"MKL_DEBUG_CPU_TYPE": "4"}, replace(facts(cpu=AMD), variables=own))
    assert environ.whole(DEFAULT)["MKL_DEBUG_CPU_TYPE"] == "4"
