"""Pictures of a case as files: each plot is a function from rows to the text of an SVG file that stands alone."""
