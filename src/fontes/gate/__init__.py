"""Gates: tests that a change of a search loses no quality."""
