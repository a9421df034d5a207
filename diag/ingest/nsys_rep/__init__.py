"""Reads Nsight Systems reports (.nsys-rep, .qdrep) without Nsight Systems.

Their format is not published. What is known of it, and how it was found out, is in `docs/formats/nsys-rep.md`. A report
is turned into the SQLite export that `nsys export` would make of it, which `diag.ingest.nsys_sqlite` reads: what the
tables and columns mean is said in one place, whoever wrote them.
"""
