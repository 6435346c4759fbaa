"""Task graphs: stages that run at the same time, each on its stack or in a process of its own."""
