"""The rules of live triage: what the nodes of a running job tell, as a verdict. Pure."""
