"""The newest of everything; filter, sort, fold; selection by key. Pure."""
