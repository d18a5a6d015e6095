"""From a Report to what a person or a machine reads: one small file per format."""
