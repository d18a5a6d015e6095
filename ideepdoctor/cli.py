"""Commands only: parse, call, render, exit code."""


def main() -> None:
    """Entry point of the console script."""
