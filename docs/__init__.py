"""The documentation: what makes its pages from the rules, and what builds it."""
