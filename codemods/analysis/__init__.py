"""From files to findings: which programs are run, by how many processes, and which observations count."""
