"""Many traces read at once: a shard for each, by processes of this machine or workers of a cluster; then one report."""
