"""Vectors and term weights that encoders compute from the documents of segments."""
