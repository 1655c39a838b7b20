"""Tables and plots from plain numbers."""
