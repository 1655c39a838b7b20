"""The tasks that can be trained, a file each."""
