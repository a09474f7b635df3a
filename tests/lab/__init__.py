"""The hang lab: real trainings over gloo on the real test cluster, one fault in one rank each."""
