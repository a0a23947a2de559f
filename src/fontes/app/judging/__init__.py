"""Judging: pools of several pipelines' best documents, graded blind by several judges."""
