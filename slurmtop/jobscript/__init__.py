"""Reads batch scripts: what a job asked for and which signals it is prepared for. Pure."""
