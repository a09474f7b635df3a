"""Stand-ins for ``nvidia-smi`` and ``dcgmi`` on the nodes of the test cluster (see README.md)."""
