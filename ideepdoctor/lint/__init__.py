"""Advice on a program from its source alone: bytes come in, findings with their places go out. Pure."""
