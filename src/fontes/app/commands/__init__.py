"""The commands beyond the main job, a module each."""
