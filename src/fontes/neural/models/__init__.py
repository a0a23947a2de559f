"""Pretrained models: files, precision, device and batches."""
