"""An ordinary Flower app for PyTorch."""
