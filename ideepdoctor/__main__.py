"""The start of the program: the command line, or one clear error where the installation itself is broken."""

from __future__ import annotations

import sys

_COULD_NOT_CHECK = 3


def main() -> None:
    """Run the command that the command line asks for."""
    try:
        from ideepdoctor.cli import main as command
    except Exception as error:  # noqa: BLE001 - a file that was edited or lost may raise anything
        sys.stderr.write(_broken(error))
        sys.exit(_COULD_NOT_CHECK)
    command()


def _broken(error: Exception) -> str:
    """What is said of an installation whose command line cannot be imported."""
    lines = [f"error  this installation of ideepdoctor is broken: {type(error).__name__}: {error}"]
    try:
        from ideepdoctor.selftest.record import file_state

        state = file_state()
        lines += [f"  missing  {name}" for name in state.missing]
        lines += [f"  altered  {name}" for name in state.altered]
    except Exception:  # noqa: BLE001 - the first error is the one that matters
        lines.append("  the files could not be compared with what was installed")
    lines.append("  do       pip install --force-reinstall ideepdoctor")
    if {"-v", "-vv", "--verbose"} & set(sys.argv[1:]):
        import traceback

        lines += "".join(traceback.format_exception(error)).splitlines()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
