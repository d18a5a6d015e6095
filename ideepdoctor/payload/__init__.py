"""Files that run inside a target interpreter: standard library only, Python 2.7 to 3.14. Nothing imports them."""
