"""Indexes of several shards: made, searched in part, opened where some cannot be read."""
