"""Entry of the launcher: load the package by its folder, whatever the installation looks like."""

import importlib
import os
import sys

# At the end: a module of ours must never stand in for one of the standard library.
sys.path[:1] = []
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.exit(importlib.import_module("launcher.main").main())
