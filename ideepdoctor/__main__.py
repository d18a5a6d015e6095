"""Run the doctor as ``python -m ideepdoctor``."""

from ideepdoctor.cli import main

if __name__ == "__main__":
    main()
