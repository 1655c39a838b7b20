"""Local training with torch."""
