"""Judging: a pool of several pipelines' best documents, graded blind by several judges, in one file."""
