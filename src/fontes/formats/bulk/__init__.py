"""Many documents at once, as bytes: packed, and read so out of JSON lines."""
