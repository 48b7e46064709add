"""The server of an editor, made and run."""

from __future__ import annotations

import os
import sys

from codemods.editor.server import Server


def build() -> Server:
    """Return the server, its features registered."""
    from codemods.editor.features import register

    server = Server()
    register(server)
    return server


def serve() -> int:
    """Serve on standard input and output until the client leaves; return the exit status the protocol asks for."""
    server = build()
    sys.stdout.flush()
    # The protocol has the stream to itself: whatever else might be printed goes to standard error.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server.start_io(stdout=stream)
    return 0 if server.was_shut_down else 1
