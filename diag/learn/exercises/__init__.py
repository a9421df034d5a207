"""The sick programs of the exercises, one file each."""
