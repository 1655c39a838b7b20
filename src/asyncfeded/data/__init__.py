"""Data of many clients, as plain arrays."""
