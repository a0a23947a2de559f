"""What is kept on disk: files, arrays, artifacts, locks and caches."""
