"""Interpreters and environments: find them, choose one, run payloads in it."""
