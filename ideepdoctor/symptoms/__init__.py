"""What has already gone wrong, by what it left: texts of errors, lines of kernels, signals, exit codes. Pure.

``causes`` and ``installing`` say what can be behind it, ``table`` and ``endings`` by which texts each is known, and
``search`` reads a log and ranks. The rules about endings of a child (``rules/deaths.py``) ask the same table.

How causes are ranked, the first that differs decides:

1. Strength of the best text that names the cause: a text that only this cause makes, before a text that several make,
   before a warning that the program survived, before a signal or an exit code alone.
2. Support: how many different texts name it, and how many clues for it (the name of a file, of a library, of a
   function) stand within fifty lines of one of them. So a traceback through concat.py turns the order of the causes of
   one ``mkldnn::error``, and no number of signals outweighs one text.
3. The place in the table, where the causes of one text are listed by how often each is behind it.
4. The line: what stands first in a log comes before what follows from it.
"""
