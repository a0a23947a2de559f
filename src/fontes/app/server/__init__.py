"""The server: indexes and pipelines behind HTTP, and the page that searches them. It needs the extra `server`."""
