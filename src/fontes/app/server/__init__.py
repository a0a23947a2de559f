"""The HTTP server and its pages. Needs the extra `server`."""
