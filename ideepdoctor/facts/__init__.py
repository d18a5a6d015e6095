"""From a target (and recorded text) to Facts."""
