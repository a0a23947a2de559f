"""Fusion: several runs or stages into one."""
