"""Many hosts: their reports read one by one, grouped by cause, and compared with their twins."""
