"""Facts to verdict, verdict to words. Pure."""
