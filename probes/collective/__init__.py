"""Reference workloads of several processes: what ranks say to each other, how much of it, and how long that takes."""
