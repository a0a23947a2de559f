"""Search as tools of a language model: the tools and their protocol, the log of calls, and what is learnt from it."""
