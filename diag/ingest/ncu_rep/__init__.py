"""Reads Nsight Compute reports (.ncu-rep, .nsight-cuprof-report) without Nsight Compute.

The layout of the file is documented (Nsight Compute, Customization Guide, Report File Format), and NVIDIA ships the
numbers of the fields with the tool (extras/FileFormat). What stands in this package are those facts, in Python.
"""
