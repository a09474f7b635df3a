"""Model to lines and cells. Pure: no widget, no clock."""
