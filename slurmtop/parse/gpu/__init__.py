"""Answers of GPU tools: nvidia-smi, dcgmi, exporters, AMD."""
