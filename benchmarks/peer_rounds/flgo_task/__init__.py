"""A benchmark in FLGo's sense: a package with a `core` that has a pipe and a calculator."""
