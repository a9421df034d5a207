"""The live view of a running workload in a terminal.

Drawn without Textual: an app of it that changes some lines each second takes 1.7 % of a core, more than all of
`diag watch` may cost.
"""
