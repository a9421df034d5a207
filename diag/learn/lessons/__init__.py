"""The measurements of the lessons, one file each."""
