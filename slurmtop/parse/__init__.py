"""Bytes to model. Pure, total, no clock: one file a format."""
