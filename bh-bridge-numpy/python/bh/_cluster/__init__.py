"""The ranks of a cluster: functions that travel to them, data sets that they share, and checkpoints."""
