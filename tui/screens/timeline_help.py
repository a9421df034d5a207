"""How to read the timeline: what `?` shows beside its keys."""

HELP = """
# Timeline

Each **row** is a device, a stream, a host thread or a counter; time runs to the right. Above are the whole run,
with the part that is shown set off, and the axis.

- One **cell** is one column of time. Its height is how much of it is busy, its colour what takes most of it: kernels,
  copies, memsets, graph launches, communication, ranges, calls. In a terminal of few colours each has a sign.
- What is wide enough has its **name** inside; `▉` ends it. A `╵` has no duration.
- A dot `·` in the row of a **device** is idle time: all its streams are empty. Time before its first and after its last
  operation is no idle time and stays blank.
- A device's row is the union of its streams: work that overlaps is not counted twice.
- **Steps** are ranges that follow each other and fill the time of a thread.
- A **counter** spans from its least to its largest value in each half column; its scale is below its name.

The line below tells what is at the cursor `▼`. With a selection (`v`, or drag with shift, ctrl or the right button) it
measures what is inside: busy and idle time of the device as the report has them, the time of kernels, copies and
communication, and the names that take most of it.

`Enter` on idle time says what caused it: *host late* until the call that launched what ends the gap, then *launch
latency*; *device side* if it had been launched before. `Enter` on an operation shows all that is known about it.

`n` goes to the next gap that is at least a column wide, so zoom decides how small gaps may be; `G` lists the longest.
`f` goes through the findings and to the longest stretch of what they speak of, `e` to its other places.

The mouse: drag pans, the wheel zooms around the mouse, with shift it pans; a click sets the cursor, a double click is
`Enter`, a click on a label opens or closes its group, a click on the overview goes there.
"""
