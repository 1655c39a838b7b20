"""Federated learning on a virtual clock."""
