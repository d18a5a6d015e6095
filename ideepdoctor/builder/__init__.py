"""ideep4py from source: fetch, check, build, pack, prove, keep."""
