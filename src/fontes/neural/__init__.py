"""Neural retrieval and reranking: encoders, vector search, late interaction, rerankers."""
