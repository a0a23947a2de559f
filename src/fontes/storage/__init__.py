"""Storage on disk: files, arrays, artifacts, locks, hashes and caches."""
