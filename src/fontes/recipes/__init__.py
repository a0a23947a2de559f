"""Published systems, each in one file that reads like its paper."""
