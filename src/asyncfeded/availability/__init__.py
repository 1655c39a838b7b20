"""When clients are there, and what being away does to a round."""
