"""Models: found, loaded, made ready in a precision and a device, and run in batches."""
