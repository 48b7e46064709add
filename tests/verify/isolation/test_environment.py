"""What of our environment a run gets."""

from __future__ import annotations

import pytest

from verify.errors import VerifyError
from verify.isolation.environment import passed
from verify.running.settings import variables


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "LANG", "LC_ALL", "LANGUAGE", "TZ", "USER", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH"),
        *("PYTHONPATH", "PYTHONHASHSEED", "PYTHON_GIL", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCH_HOME", "PYTORCH_CUDA_ALLOC_CONF"),
        *("NCCL_DEBUG", "MASTER_ADDR", "WORLD_SIZE", "HF_HOME", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM"),
    ],
)
def test_what_runs_need(name: str) -> None:
    assert passed({name: "/some/value"}, {}) == {name: "/some/value"}


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "WANDB_API_KEY", "AWS_PROFILE", "GITHUB_ACTOR", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"),
        *("DOCKER_HOST", "KUBECONFIG", "HTTPS_PROXY", "DISPLAY", "XDG_RUNTIME_DIR", "GIT_DIR", "PIP_INDEX_URL"),
        *("PYTHON_KEYRING_PASSWORD", "TORCH_HUB_TOKEN", "MYOWN", "CUDALIKE", "XPATH"),
    ],
)
def test_what_they_do_not_get(name: str) -> None:
    assert passed({name: "/some/value"}, {}) == {}


def test_no_token_under_an_allowed_name() -> None:
    given = {"PYTHONPATH": "ghp_0123456789abcdefABCD", "CUDA_X": "http://me:swordfish@host"}
    assert passed(given, {}) == {}


def test_what_is_named_is_passed_on_whatever_it_is() -> None:
    named = variables(["HF_TOKEN", "MODE=a=b", "EMPTY="], {"HF_TOKEN": "hf_x", "OTHER": "1"})
    assert named == {"HF_TOKEN": "hf_x", "MODE": "a=b", "EMPTY": ""}
    assert passed({"HF_TOKEN": "hf_x", "OTHER": "1", "LANG": "C"}, named) == {**named, "LANG": "C"}


@pytest.mark.parametrize(("text", "sentence"), [("=x", "write NAME or NAME=VALUE"), ("NONE", "no such variable here")])
def test_names_that_are_none(text: str, sentence: str) -> None:
    with pytest.raises(VerifyError, match=sentence):
        variables([text], {})
