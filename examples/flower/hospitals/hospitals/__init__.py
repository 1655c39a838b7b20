"""Hospitals train one model asynchronously, and keep their data."""
