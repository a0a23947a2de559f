"""Building an index on a cluster: segments of parts of the documents, made side by side, and their merges."""
