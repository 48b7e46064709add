"""From files to findings: which programs are run, by how many processes, and what counts of what they show."""
