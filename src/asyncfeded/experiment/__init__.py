"""Whole experiments: from settings to results."""
