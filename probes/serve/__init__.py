"""Load on a server: arrivals, lengths, clients, and the log that a run leaves."""
