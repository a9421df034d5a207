"""Reads what Nsight Compute prints (`ncu`, or `ncu --import`), saved to a file: CSV and text, raw and details page.

The options and pages are documented (Nsight Compute, CLI manual, Console Output). What its documentation leaves out
was found by printing reports with ncu 2022.3 and from outputs of newer versions; `docs/formats/ncu-csv.md` tells it.
"""
