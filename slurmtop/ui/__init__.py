"""The only room that imports textual or rich."""
