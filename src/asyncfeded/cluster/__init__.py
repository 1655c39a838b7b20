"""Federated learning on Ray: real time, on one machine or on many."""
