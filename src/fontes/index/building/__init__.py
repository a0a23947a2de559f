"""The parts of a build: batches of documents, workers, runs of postings with terms of their own, ids, lists."""
