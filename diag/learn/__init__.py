"""Lessons: the reader predicts, this machine measures, diag diagnoses, and an exercise hides a fault."""
