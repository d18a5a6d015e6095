"""Known-good stacks as data (TOML), and the choice among them. Reads nothing but its own files."""
