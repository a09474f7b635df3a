"""The only room that does I/O: runners, sources, the poller, log tails, facts of a job."""
