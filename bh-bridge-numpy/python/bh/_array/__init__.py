"""The class of arrays: its methods and protocols, indexing, text, conversion of what Python holds, layout in memory, subclasses."""
