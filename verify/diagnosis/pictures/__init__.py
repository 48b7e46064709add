"""Pictures of the graph at a fault: which boxes, where they lie, how they are drawn, and a tree of text."""
