"""What is said of a fleet and not of one environment: four documents for ``explain``. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ideepdoctor.model.findings import FixSafety, Severity


@dataclass(frozen=True, slots=True)
class Case:
    """A fleet in words, as an example."""

    name: str


class Page:
    """A document. The docstring has the headings of a rule; what is found is found by ``fleet merge``."""

    title: ClassVar[str]
    severity: ClassVar[Severity] = Severity.WARNING
    fix: ClassVar[FixSafety] = FixSafety.MANUAL
    requires: ClassVar[tuple[str, ...]] = ()
    ok: ClassVar[tuple[Case, ...]] = ()
    bad: ClassVar[tuple[Case, ...]] = ()

    @classmethod
    def code(cls) -> str:
        """The code, which is the class's name."""
        return cls.__name__


class IDP001(Page):
    """A host of a fleet gave no answer that could be judged: nothing is known of it.

    What it checks
        Whether the report of each host says that it was looked at. A host is `unreachable` (no connection, a refused
        login), a `timeout` (no answer in the time that it had), or `failed` (it answered, and not with facts; or the
        command that made its report ended with an error).

    Why it matters
        A host that nobody could look at is not a healthy host. `fleet merge` counts it apart, and ends with 3 where
        nothing worse was found.

    How to fix
        The words of the connection or of the command stand beside the host. Try the same by hand; then run
        `ideepdoctor fleet diagnose` again for these hosts, and merge the new reports with the old ones: of two reports
        of one host, the newer counts.

    References
        The README, Many machines.
    """

    title = "A host without an answer"
    bad = (Case("`ssh: connect to host node017 port 22: No route to host`"), Case("no answer within 120 seconds"))
    ok = (Case("a report with findings: the host was looked at"),)


class IDP002(Page):
    """A file that was given to `fleet merge` is no report of a host: it is left out, and named.

    What it checks
        Whether each file is JSON in UTF-8, of a schema that this ideepdoctor knows: a report of any command that judges
        an environment, facts (`diagnose --save-facts`), or an answer of the bare probe. Not so: a file that is cut off
        or empty, binary, larger than 64 MB, unreadable, no regular file, with numbers that JSON lacks (NaN), of a newer
        major version of the schema, or of another program.

    Why it matters
        The host that the file was meant to be about is missing in what is said of the fleet. The exit code is 3 where
        nothing worse was found.

    How to fix
        Collect that report again; or update this ideepdoctor where the file is of a newer one; or name the right files.

    References
        `ideepdoctor schema` prints the schema of a report.
    """

    title = "A file that is no report of a host"
    bad = (Case("a report of which the end is missing, since the disk was full"), Case("`package.json`"))
    ok = (Case("the output of `ideepdoctor diagnose --format json`"),)


class IDP003(Page):
    """A few hosts of one kind have something that most of their twins do not have.

    What it checks
        Hosts with the same processor and number of CPUs should have the same versions of Python, Chainer, ideep4py and
        NumPy. Those that do are twins, and should have in common: which MKL-DNN computes (its name, owner and build),
        the processor's instructions, the kernel of the convolution, threads, open CPUs, CPU quota, kernel, system, C
        library, the guard, the variables that the doctor looks at, and every other package. At least 3 twins are
        needed, and a value is usual when at least two thirds of them have it. Where no value is usual, the twins are of
        several kinds, and none of them is odd: `-v` lists these.

    Why it matters
        Of many machines that should be alike, the odd one is where a job crashes, is slow, or gets other numbers.

    How to fix
        `ideepdoctor diff` of the reports of one of its twins and of the odd host says everything that they differ in.

    References
        `ideepdoctor explain IDP004` for hosts that are slower.
    """

    title = "A host that is not like its twins"
    bad = (Case("117 of 118 hosts compute with ideep4py's own MKL-DNN 0.14, node017 with MKL-DNN 0.21 of its system"),)
    ok = (Case("two racks with two versions of a package: 60 hosts have one, 58 the other"),)


class IDP004(Page):
    """A host is slower than its twins by more than noise.

    What it checks
        Speeds that reports have: GFLOP/s of the smoke test's convolution, its time against NumPy's, and the steps of
        `bench`. Among at least 5 twins (`IDP003`) with the same measurement, a host is slow when it is below the
        median by more than 3.5 robust standard deviations, and by at least 10 %. The robust standard deviation is
        1.4826 times the median of the distances from the median (MAD): one slow host, or a few, do not change it.
        The 10 % keep a host from being called slow where its twins happen to be equal to a hundredth.

    Why it matters
        A step of data-parallel training takes as long as its slowest host. A hot processor, a neighbour on the same
        machine, a power limit or a memory channel without memory are not to be seen in versions and variables.

    How to fix
        First what else this host differs in, which is named beside it. Then `ideepdoctor bench` on it and on a twin,
        when nothing else runs; `ideepdoctor cpu` shows what is left of the processor.

    References
        Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993, for the limit of 3.5.
    """

    title = "A host that is slower than its twins"
    bad = (Case("31 GFLOP/s, and the median of 118 twins is 62.4, the limit 56.2"),)
    ok = (Case("58 GFLOP/s where the limit is 56.2"),)


PAGES: tuple[type[Page], ...] = (IDP001, IDP002, IDP003, IDP004)
"""In the order of their codes."""
