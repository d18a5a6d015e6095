"""Drivers and statistics of the payloads that prove: smoke."""
