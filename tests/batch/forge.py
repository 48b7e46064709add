"""A forge on this machine: git over HTTP, and stand-ins for the clients that open, tell of and merge requests."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.batch.tools import bare, git, repository


class Backend(http.server.BaseHTTPRequestHandler):
    """git over HTTP: ``git http-backend``, for those who know ``secret`` (``user:password``) if there is one."""

    root = ""
    secret = ""

    def do_GET(self) -> None:
        """See BaseHTTPRequestHandler."""
        self._serve(b"")

    def do_POST(self) -> None:
        """See BaseHTTPRequestHandler."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._serve(body)

    def _serve(self, body: bytes) -> None:
        given = self.headers.get("Authorization", "")
        if self.secret and given != "Basic " + base64.b64encode(self.secret.encode()).decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": self.root,
                "GIT_HTTP_EXPORT_ALL": "1",
                "REMOTE_USER": "me",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            },
        )
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(root: Path, secret: str = "") -> Iterator[str]:
    """The host and port at which the repositories below ``root`` are served."""
    handler = type("Served", (Backend,), {"root": str(root), "secret": secret})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{serving.server_address[1]}"
        finally:
            serving.shutdown()


class Forge:
    """What the clients' stand-ins know, in ``folder``: repositories by ``host/owner/name``, and their requests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "git"
        (folder / "bin").mkdir(parents=True)
        script = (Path(__file__).with_name("forge_client.py")).read_text()
        for name in ("gh", "glab"):
            (folder / "bin" / name).write_text(f"#!{sys.executable} -SE\n{script}")
            (folder / "bin" / name).chmod(0o755)
        self.write({"now": "2026-11-01T10:00:00Z", "repos": {}})

    def environment(self) -> dict[str, str]:
        """What the environment has to have for the stand-ins to be found."""
        return {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "FORGE": str(self.folder)}

    def read(self) -> dict[str, Any]:
        """All that it knows."""
        told: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return told

    def write(self, state: Mapping[str, Any]) -> None:
        """Have it know ``state``."""
        (self.folder / "state.json").write_text(json.dumps(state, indent=1))

    def set(self, **values: Any) -> None:
        """Set what concerns all of it: ``now``, or ``down``, the words with which everything is refused."""
        self.write({**self.read(), **values})

    def add(self, name: str, requests: list[dict[str, Any]] | None = None, **more: Any) -> None:
        """Have it know a repository, ``host/owner/name``, with ``requests``."""
        state = self.read()
        state["repos"][name] = {"requests": [], **more}
        for number, one in enumerate(requests or (), 1):
            told = {"number": number, "branch": "codemod", "base": "main", "title": "A title", "body": "why"}
            told |= {"draft": False, "state": "open", "labels": [], "reviewers": [], "created": "2026-10-20T08:00:00Z"}
            state["repos"][name]["requests"].append({**told, **one})
        self.write(state)

    def origin(self, name: str, files: Mapping[str, str], host: str) -> Path:
        """A repository ``owner/name`` that is served, and known at ``host``; return a place to work on it."""
        work = repository(self.folder / "work" / name, files)
        place = bare(self.root / f"{name}.git", work)
        git(place, "config", "http.receivepack", "true")
        git(work, "remote", "add", "origin", str(place))
        self.add(f"{host}/{name}", git=str(place), labels=["codemod"])
        return work

    def request(self, name: str, number: int = 1) -> dict[str, Any]:
        """A request of the repository ``host/owner/name``."""
        found: dict[str, Any] = self.read()["repos"][name]["requests"][number - 1]
        return found

    def request_count(self, name: str) -> int:
        """How many requests the repository ``host/owner/name`` has."""
        return len(self.read()["repos"][name]["requests"])

    def change(self, name: str, number: int = 1, **values: Any) -> None:
        """Have a request be otherwise."""
        state = self.read()
        state["repos"][name]["requests"][number - 1].update(values)
        self.write(state)

    def asked(self, verb: str = "") -> list[list[str]]:
        """What the clients were asked, in order; with ``verb`` only those commands."""
        log = self.folder / "log"
        words = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [one for one in words if not verb or verb in one[1:3]]

    def forget(self) -> None:
        """Forget what was asked."""
        (self.folder / "log").unlink(missing_ok=True)

    def drop_branch(self, name: str, branch: str) -> None:
        """Remove a branch of ``owner/name``, as forges do once it is merged."""
        git(self.root / f"{name}.git", "update-ref", "-d", f"refs/heads/{branch}")

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def check(status: str, conclusion: str) -> dict[str, Any]:
    """The run of a check, as GitHub tells it."""
    return {
        "__typename": "CheckRun",
        "name": "tests",
        "workflowName": "CI",
        "status": status,
        "conclusion": conclusion,
        "startedAt": "2026-11-01T10:00:00Z",
        "completedAt": "2026-11-01T10:05:00Z" if conclusion else "0001-01-01T00:00:00Z",
        "detailsUrl": "https://github.com/o/n/actions/runs/1/job/2",
    }


GREEN, RED, RUNNING = check("COMPLETED", "SUCCESS"), check("COMPLETED", "FAILURE"), check("IN_PROGRESS", "")
#: A status, which is what GitHub had before there were checks.
STATUS = {
    "__typename": "StatusContext",
    "context": "ci/x",
    "state": "PENDING",
    "targetUrl": "https://ci.example.org/1",
    "startedAt": "2026-11-01T10:00:00Z",
}
