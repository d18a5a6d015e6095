"""What each command does, without the terminal: options in, a Report out. ``cli.py`` parses and prints."""
