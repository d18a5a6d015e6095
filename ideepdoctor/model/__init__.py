"""Facts, findings, plans and reports: frozen dataclasses and enums. No code that touches the world."""
