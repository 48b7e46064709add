"""A command on a version of the tree becomes a run: settings, versions, notebooks, stand-ins."""
