"""Fontes: document retrieval."""
