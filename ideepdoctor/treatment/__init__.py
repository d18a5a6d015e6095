"""Plans, the steps that carry them out, the journal that takes them back, and the variables of an environment."""
