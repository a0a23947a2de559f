"""What encoders make of the documents of segments: vectors, and weights of terms, beside the inverted index."""
