"""Programs in containers, by a stand-in for the program that runs these."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.cli import main
from tests.verify.containers import StandIn, options
from verify.isolation import Ending, Limits, Unavailable, View, engines
from verify.isolation.container import Container
from verify.isolation.engines import Bind, Engine, NoContainers
from verify.isolation.environment import passed
from verify.isolation.process import LAUNCHER

IMAGE = "registry.example.org/torch:2"
SHOW = "import os, json; print(json.dumps([os.getcwd(), os.listdir(), open('module.py').read(), dict(os.environ)]))"


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH: empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def docker(alone: Path) -> StandIn:
    """A docker that has the image."""
    return StandIn(alone).install([IMAGE])


@pytest.fixture
def place(docker: StandIn, tree: Path) -> Iterator[Container]:
    with Container(tree, image=IMAGE, python=sys.executable) as workspace:
        yield workspace


def run(place: Container, shared: Path, code: str, environment: dict[str, str] | None = None, **limits: object):  # type: ignore[no-untyped-def]
    return place.execute(
        [sys.executable, "-c", code],
        cwd=place.original,
        changed={"module.py": b"VALUE = 'changed'\n"},
        environment=environment or {},
        shared=shared,
        limits=Limits(**{"seconds": 20.0, **limits}),  # type: ignore[arg-type]
    )


class TestTheProgram:
    """Which container program is taken."""

    def test_none_is_installed(self, alone: Path) -> None:
        with pytest.raises(NoContainers, match=r"^neither docker nor podman is installed$"):
            engines.find()

    def test_one_that_does_not_answer_is_passed_over(self, alone: Path) -> None:
        StandIn(alone).install(dead=True)
        with pytest.raises(NoContainers, match=r"^docker does not answer: Cannot connect to the daemon$"):
            engines.find()
        StandIn(alone, "podman").install()
        assert engines.find() == Engine(str(alone / "podman"), podman=True, rootless=os.getuid() != 0)

    def test_docker_may_be_podman(self, alone: Path) -> None:
        StandIn(alone).install(says="podman")
        assert engines.find().podman

    def test_an_image_is_fetched_once(self, alone: Path, tree: Path) -> None:
        docker = StandIn(alone).install()
        for _ in range(2):
            Container(tree, image=IMAGE, python=sys.executable).close()
        assert docker.calls("pull") == [["pull", "--quiet", IMAGE]]

    def test_an_image_that_is_not_to_be_had_is_told(self, docker: StandIn, tree: Path) -> None:
        with pytest.raises(Unavailable, match="docker cannot fetch the image nowhere: no such image: nowhere"):
            Container(tree, image="nowhere", python=sys.executable)

    def test_an_image_without_that_interpreter_is_told(self, docker: StandIn, tree: Path) -> None:
        with pytest.raises(Unavailable, match=r"/no/python of the image .* cannot run anything: exec: /no/python"):
            Container(tree, image=IMAGE, python="/no/python")


class TestTheWords:
    """What a container program is asked for."""

    def words(self, engine: Engine, **more: object) -> dict[str, list[str]]:
        limits = Limits(1.0, memory=1 << 30, disk=7 << 20, processes=50, network=bool(more.pop("network", False)))
        made = engine.words(IMAGE, ["python3", "-V"], limits, [], **more)  # type: ignore[arg-type]
        return options(made[1:])

    def test_nothing_but_what_is_named_is_reached(self) -> None:
        words = self.words(Engine("docker"))
        assert words["--network"] == ["none"]
        assert {"--rm", "--interactive", "--read-only"} < words.keys()
        assert words["--cap-drop"] == ["ALL"]
        assert "no-new-privileges" in words["--security-opt"]
        assert "--mount" not in words
        assert (words["--entrypoint"], words[""]) == (["python3"], [IMAGE, "-V"])

    def test_limits(self) -> None:
        words = self.words(Engine("docker"))
        assert words["--memory"] == words["--memory-swap"] == [str((1 << 30) + (256 << 20))]
        assert words["--pids-limit"] == ["66"]
        assert words["--tmpfs"] == [f"/tmp:rw,mode=1777,size={7 << 20}"]

    def test_the_network_where_it_is_let(self) -> None:
        assert "--network" not in self.words(Engine("docker"), network=True)

    def test_the_user(self) -> None:
        me = [f"{os.getuid()}:{os.getgid()}"]
        assert self.words(Engine("docker"))["--user"] == me
        assert "--user" not in self.words(Engine("docker", rootless=True))
        podman = self.words(Engine("podman", podman=True, rootless=True))
        assert (podman["--user"], podman["--userns"]) == (me, ["keep-id"])
        assert "--userns" not in self.words(Engine("podman", podman=True))

    def test_devices(self) -> None:
        assert self.words(Engine("docker"), devices=True)["--gpus"] == ["all"]
        assert self.words(Engine("podman", podman=True), devices=True)["--device"] == ["nvidia.com/gpu=all"]
        assert not {"--gpus", "--device"} & self.words(Engine("docker")).keys()

    def test_a_path_with_a_comma(self) -> None:
        assert Bind(Path("/a b")).word() == "type=bind,source=/a b,target=/a b,readonly"
        assert Bind(Path("/a,b"), writable=True).word() == 'type=bind,"source=/a,b","target=/a,b"'


class TestRuns:
    """Programs that are run."""

    def test_what_a_program_sees(
        self, place: Container, shared: Path, docker: StandIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MY_TOKEN", "hunter2")
        done = run(place, shared, SHOW, {"MODE": "fast", "PYTHONPATH": "/ours"})
        folder, files, text, environment = ast.literal_eval(done.output)
        assert (done.ending, done.status) == (Ending.EXITED, 0)
        assert (Path(folder).name, sorted(files), text) == (
            "tree", ["data", "module.py"], "VALUE = 'changed'\n",
        )  # fmt: skip
        assert Path(folder) != place.original
        assert environment["MODE"] == "fast"
        assert environment["OF_THE_IMAGE"] == "yes"
        assert environment["PATH"] == os.defpath
        assert environment["PYTHONPATH"] == "/ours:/of/the/image"
        assert "MY_TOKEN" not in environment
        assert "hunter2" not in str(docker.calls("run"))
        assert place.original.joinpath("module.py").read_text() == "VALUE = 'original'\n"
        assert done.sandbox == f"a copy of the tree in a container of {IMAGE} (docker), no network"

    def test_only_our_folders_can_be_written(self, place: Container, shared: Path, docker: StandIn) -> None:
        exposed = shared.parent / "data"
        exposed.mkdir()
        place.execute(
            [sys.executable, "-c", ""], cwd=place.original, changed={}, environment={}, shared=shared,
            limits=Limits(20.0), view=View(("/needed/here",), (str(exposed),)),
        )  # fmt: skip
        mounts = options(docker.calls("run")[-1])["--mount"]
        probe = LAUNCHER.parents[1]
        seen = {path: Bind(path).word() in mounts for path in (place.original, probe, exposed)}
        assert seen == dict.fromkeys(seen, True)
        assert {word for word in mounts if "readonly" not in word} == {
            Bind(path, writable=True).word() for path in (place._folders[0].path, shared)
        }

    def test_limits_end_it(self, place: Container, shared: Path) -> None:
        done = run(place, shared, "import time; time.sleep(60)", seconds=1.0)
        assert (done.ending, done.notes) == (Ending.TIMEOUT, ("stopped after 1 s, as --timeout says",))

    def test_an_image_that_went_away_is_told(self, place: Container, shared: Path, docker: StandIn) -> None:
        docker.install([])
        done = run(place, shared, "")
        assert done.ending is Ending.NOT_STARTED
        assert done.notes == (f"the launcher ended with status 125: no such image: {IMAGE}",)

    def test_the_interpreter_answers_in_it(self, docker: StandIn) -> None:
        answer = engines.find().ask(IMAGE, sys.executable, "import os; print(os.environ['OF_THE_IMAGE'])", 20)
        assert answer.stdout == "yes\n"
        assert "--mount" not in options(docker.calls("run")[-1])

    def test_no_overlay(self, docker: StandIn, tree: Path) -> None:
        with pytest.raises(Unavailable, match="no overlay can be had"):
            Container(tree, image=IMAGE, python=sys.executable, mode="overlay")


class TestTheCommandLine:
    """``codemod verify --image``."""

    def test_no_container_program(self, alone: Path, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["verify", str(tree / "module.py"), "--image", IMAGE]) == 2
        assert "cannot isolate a run: neither docker nor podman is installed" in capsys.readouterr().err

    def test_an_image_without_torch(
        self, docker: StandIn, tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bare = tree / "python"
        bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
        bare.chmod(0o755)
        assert main(["verify", str(tree / "module.py"), "--image", IMAGE, "--python", str(bare)]) == 3
        told = " ".join(capsys.readouterr().out.split())
        assert f"of the image {IMAGE} has no torch: choose an image that has it with --image" in told


def test_paths_of_this_machine_stay_here() -> None:
    given = {"PATH": "x", "HOME": "/home/me", "LD_LIBRARY_PATH": "lib:/opt/lib", "OMP_NUM_THREADS": "2", "LANG": "C"}
    named = {"DATA": "/data"}
    assert passed(given, named, elsewhere=True) == {"OMP_NUM_THREADS": "2", "LANG": "C", "DATA": "/data"}
    assert passed(given, named).keys() == {*given, "DATA"}


def test_the_launcher_is_understood_by_the_oldest_python() -> None:
    for file in LAUNCHER.glob("*.py"):
        ast.parse(file.read_text(), feature_version=(3, 8))


def test_nothing_is_left(place: Container, shared: Path) -> None:
    run(place, shared, "open('x', 'w').write('x')")
    assert os.listdir(place._folders[0].path) == [".lock"]
    assert not (place.original / "x").exists()
