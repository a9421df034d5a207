"""The terminal UI: screens and widgets over a case."""
