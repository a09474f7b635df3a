"""What probes on the nodes print: processes."""
