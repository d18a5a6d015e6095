"""Signatures as people report them lead to their cause, whatever signal comes with them."""

from __future__ import annotations

import pytest

from ideepdoctor.model.facts import Outcome
from ideepdoctor.rules.deaths import CAUSES, classify, how_it_ended, last_line
from ideepdoctor.symptoms.table import RUNNING, first_of
from tests.symptoms.signatures import SIGNATURES as REPORTED

TERMINATE = "terminate called after throwing an instance of"


def raised(kind: str, text: str, stderr: str = "") -> Outcome:
    return Outcome(ok=False, seconds=0.1, error_type=kind, error_text=text, exit_code=1, stderr_tail=stderr)


def killed(signal: str, stderr: str = "") -> Outcome:
    return Outcome(ok=False, seconds=0.1, signal=signal, stderr_tail=stderr)


SIGNATURES = [
    (raised("ImportError", "libmkldnn.so.0: cannot open shared object file: No such file or directory"), "not found"),
    (raised("RuntimeError", "iDeep is not available.\nReason: ImportError: libmklml_intel.so: cannot open shared "
            "object file: No such file or directory"), "not found"),
    (raised("ImportError", "libglog.so.0: cannot open shared object file"), "lacks a library"),
    (raised("ImportError", "libmkl_intel_lp64.so: cannot open shared object file"), "two MKLs"),
    (raised("ImportError", "libfoo.so.1: cannot open shared object file"), "some package needs is not found"),
    (raised("ImportError", "libpython3.6m.so.1.0: cannot open shared object file"), "linked with libpython"),
    (raised("ModuleNotFoundError", "No module named 'numpy.core._multiarray_umath'"), "NumPy does not fit"),
    (raised("ImportError", "numpy.core.multiarray failed to import"), "NumPy does not fit"),
    (raised("RuntimeError", "module compiled against API version 0xb but this version of numpy is 0xa"), "NumPy does"),
    (raised("ImportError", "cannot import name intVector"), "NumPy does not fit"),
    (raised("ImportError", "version `GLIBCXX_3.4.20' not found (required by libmkldnn.so.0)"), "older libstdc++"),
    (raised("ImportError", "version 'CXXABI_1.3.9' not found"), "older libstdc++"),
    (raised("ImportError", "/lib64/libc.so.6: version `GLIBC_2.14' not found"), "glibc is too old"),
    (raised("ImportError", "/e/ideep4py/lib/libiomp5.so: file too short"), "truncated"),
    (raised("ImportError", "/e/lib/libmkldnn.so.0: invalid ELF header"), "damaged"),
    (killed("SIGBUS"), "shorter than it says"),
    (raised("ImportError", "libmkldnn.so.0: cannot enable executable stack as shared object requires: "
            "Invalid argument"), "2.41"),
    (raised("ImportError", "cannot enable executable stack as shared object requires: Permission denied"), "2.41"),
    (raised("ImportError", "undefined symbol: PyUnicodeUCS2_AsUTF8String"), "width of Unicode"),
    (raised("ImportError", "undefined symbol: PyUnicodeUCS4_FromString"), "width of Unicode"),
    (raised("ValueError", "Not a valid numpy version string"), "CuPy 10"),
    (raised("ImportError", "cannot import name '_mklinit' from 'numpy'"), "conda and pip"),
    (raised("SystemExit", "2", "Intel MKL FATAL ERROR: Cannot load libmkl_avx2.so or libmkl_def.so."),
     "two MKLs"),
    (raised("ImportError", "undefined symbol: mkl_sparse_optimize_bsr_trsm_i8"), "two MKLs"),
    (raised("ImportError", "undefined symbol: mkldnn_primitive_desc_query_memory_d"), "not ideep4py's own"),
    (raised("ImportError", "undefined symbol: anything_else"), "another version"),
    (killed("SIGABRT", f"{TERMINATE} 'mkldnn::error'\n  what():  std::exception"), "not ideep4py's own"),
    (killed("SIGABRT", f"{TERMINATE} 'Xbyak::Error'\n  what():  internal error"), "code generator refuses"),
    (killed("SIGABRT", "OMP: Error #15: Initializing libiomp5.so, but found libiomp5.so already initialized."),
     "second Intel OpenMP"),
    (killed("SIGSEGV", "Found Intel OpenMP ('libiomp') and LLVM OpenMP ('libomp') loaded at the same time."),
     "Intel and LLVM"),
    (Outcome(False, 0.1, exit_code=1, stderr_tail="Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is "
             "incompatible with libgomp.so.1 library."), "refuses libgomp"),
    (raised("ImportError", "libgomp.so.1: cannot allocate memory in static TLS block"), "thread-local"),
    (raised("ImportError", "/mnt/ideep/lib/libmkldnn.so.0: failed to map segment from shared object"), "noexec"),
    (killed("SIGILL"), "does not have"),
    (Outcome(False, 0.1, exit_code=132, stderr_tail="Illegal instruction (core dumped)"), "does not have"),
    (Outcome(False, 0.1, exit_code=132, stderr_tail="illegal hardware instruction (core dumped)"), "does not have"),
    (raised("RuntimeError", "code is too big"), "of this size"),
    (killed("SIGSEGV"), "two libraries clash"),
    (killed("SIGABRT"), "gave up"),
    (killed("SIGFPE"), "divided by zero"),
]  # fmt: skip


@pytest.mark.parametrize(("ending", "consequence"), SIGNATURES)
def test_a_signature_leads_to_its_cause(ending: Outcome, consequence: str):
    cause = classify(ending)
    assert consequence in cause.consequence
    assert cause.next_step


def test_every_symptom_of_a_run_is_reached_by_a_text():
    texts = [one.text for one in REPORTED]
    texts += ["\n".join(filter(None, (ending.error_text, ending.stderr_tail))) for ending, _ in SIGNATURES]
    assert {one.mark for one in RUNNING} - {found.mark for text in texts if (found := first_of(text))} == set()


def test_what_may_be_found_is_told():
    assert {classify(ending) for ending, _ in SIGNATURES} <= set(CAUSES)


def test_what_nobody_knows_has_no_cause_and_a_hang_is_a_hang():
    assert classify(raised("ValueError", "something new")).consequence == "the cause is not known"
    assert classify(Outcome(False, 20.0, timed_out=True, signal="SIGABRT")).consequence == "it hangs"


def test_how_it_ended_says_the_first_that_is_known():
    assert how_it_ended(Outcome(False, 19.6, timed_out=True, signal="SIGKILL")) == "no end within 20 s"
    assert how_it_ended(killed("SIGILL")) == "the process ended with SIGILL"
    assert how_it_ended(raised("ImportError", "one\ntwo")) == "ImportError: one"
    assert how_it_ended(raised("ImportError", "")) == "ImportError: "
    assert how_it_ended(Outcome(False, 0.1, exit_code=3)) == "the process ended with exit code 3"


def test_the_last_line_of_standard_error_else_how_it_ended():
    assert last_line(killed("SIGILL", "one\ntwo\n \n")) == "two"
    assert last_line(killed("SIGILL", "\n")) == "the process ended with SIGILL"
