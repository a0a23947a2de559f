"""What is kept on disk: files, arrays, artifacts, locks, hashes and caches."""
