"""The names of the metrics that the package measures itself."""

ACCURACY = "accuracy"
LOSS = "loss"
