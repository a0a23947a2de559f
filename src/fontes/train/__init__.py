"""Training: splits without leakage."""
