"""What a run is made of: nodes, values, places, the trace, facts about torch and the files of a program."""
