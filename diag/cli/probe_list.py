"""`diag probe list`: the reference workloads that there are."""

from __future__ import annotations

from importlib.util import find_spec

from diag.cli.terminal import width, write


def list_probes() -> None:
    """List the reference workloads, their variants and what bounds them.

    Example: diag probe list

    See also: docs/probes.md, docs/collective-probes.md, diag probe run
    """
    from diag.probes.catalogue import PROBES
    from diag.probes.collective.catalogue import PROBES as COLLECTIVES
    from diag.render.layout import wrap

    has_kernels = find_spec("torch") is not None and find_spec("triton") is not None
    lines: list[str] = []
    for probe in PROBES.values():
        lines += wrap(f"{probe.name}: {probe.idea}. Bound by {probe.bound}.", width())
        on_cpu = probe.variants("cpu")
        on_gpu = probe.variants("cuda") if has_kernels else ()
        for where, variants in (("CPU", on_cpu), ("GPU", on_gpu)):
            for each in variants if where == "CPU" or list(variants) != list(on_cpu) else ():
                lines += wrap(f"{where} {each.name}: {each.idea}", width(), " " * 6, "    ")
        lines.append("")
    lines += [*wrap("Of several ranks:", width()), ""]
    for of_ranks in COLLECTIVES.values():
        lines += wrap(f"{of_ranks.name}: {of_ranks.idea}. Shows {of_ranks.teaches}.", width())
        for each in of_ranks.variants if not of_ranks.is_primitive else ():
            lines += wrap(f"{each.name}: {each.idea}", width(), " " * 6, "    ")
        lines.append("")
    if not has_kernels:
        lines += wrap("Kernels of a GPU are listed where torch and triton are installed.", width())
    write("\n".join(lines).rstrip() + "\n")
