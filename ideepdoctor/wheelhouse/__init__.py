"""A folder with everything that a stack needs: what belongs into it, how it gets there, and whether it is all there."""
