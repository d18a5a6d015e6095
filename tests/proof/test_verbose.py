"""Lines as libmkldnn 0.12 (ideep4py 1.0.4) and 0.14 (2.0.0.post3) printed them."""

from __future__ import annotations

import pytest

from ideepdoctor.proof.verbose import convolution_kernel, parse, parse_line

CONVOLUTION = (
    "mkldnn_verbose,exec,convolution,jit:avx512_common,forward_training,fsrc:nChw16c fwei:OIhw16i16o fbia:x "
    "fdst:nChw16c,alg:convolution_direct,mb4_g1ic16oc32_ih14oh14kh3sh1dh0ph1_iw14ow14kw3sw1dw0pw1,0.120117"
)
GEMM = (
    "mkldnn_verbose,exec,convolution,gemm:blas,backward_data,fsrc:nchw fwei:oihw fbia:undef fdst:nchw,"
    "alg:convolution_direct,mb2_g1ic3oc16_ih32oh16kh7sh2dh0ph3_iw32ow16kw7sw2dw0pw3,10.0498"
)
LINEAR = (
    "mkldnn_verbose,exec,inner_product,gemm:blas,forward_training,fsrc:nc fwei:oi fbia:x fdst:nc,,mb32ic128oc64,0.32"
)


def test_a_line_is_taken_apart() -> None:
    seen = parse_line(CONVOLUTION + "\n")
    assert seen is not None
    assert (seen.primitive, seen.implementation, seen.propagation) == (
        "convolution",
        "jit:avx512_common",
        "forward_training",
    )
    assert seen.formats.split()[0] == "fsrc:nChw16c"
    assert seen.auxiliary == "alg:convolution_direct"
    assert seen.problem.startswith("mb4_g1ic16oc32")
    assert seen.milliseconds == pytest.approx(0.120117)
    assert seen.is_jit


def test_an_empty_field_keeps_its_place() -> None:
    seen = parse_line(LINEAR)
    assert seen is not None
    assert (seen.auxiliary, seen.problem, seen.is_jit) == ("", "mb32ic128oc64", False)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "mkldnn_verbose,info,Intel(R) MKL-DNN v0.14.0 (Git Hash N/A),Intel(R) AVX2",
        CONVOLUTION.replace("exec", "create"),
        CONVOLUTION[:60],
        CONVOLUTION.replace("0.120117", "soon"),
        "dnnl_" + CONVOLUTION,
    ],
)
def test_what_is_no_execution_is_left_out(line: str) -> None:
    assert parse_line(line) is None
    assert [seen.primitive for seen in parse([line, LINEAR])] == ["inner_product"]


def test_the_kernel_is_the_jit_one_where_both_ran() -> None:
    assert convolution_kernel(parse([LINEAR, GEMM, CONVOLUTION])) == "jit:avx512_common"


def test_a_convolution_without_jit_is_named_as_it_is() -> None:
    assert convolution_kernel(parse([LINEAR, GEMM])) == "gemm:blas"


def test_no_convolution_no_kernel() -> None:
    assert convolution_kernel(parse([LINEAR])) is None
