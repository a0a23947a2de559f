"""Search as tools of a language model: the tools, their protocol, the log of calls, and test collections made from the log."""
