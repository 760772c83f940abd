"""The client: a plan and an endpoint in, records out. The hot path reads, stamps, counts and appends, no more."""
