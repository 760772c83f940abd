"""For the project's own tests: pytest's tester of plugins."""

pytest_plugins = ["pytester"]
