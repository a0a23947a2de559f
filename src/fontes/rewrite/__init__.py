"""Turns of conversations, rewritten so that each can be understood by itself."""
