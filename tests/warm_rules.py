"""All rules, loaded once for all processes of `tests.warm`."""

from diag.rules.engine import rules

rules()
