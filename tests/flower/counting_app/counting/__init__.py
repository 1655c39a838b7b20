"""Every update marks a place of its own in the model."""
