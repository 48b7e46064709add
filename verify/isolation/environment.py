"""Which of our variables a run gets: those that say how to compute and where things are, none that looks secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from codemods.source.secrets import has_secret_name, looks_secret
from codemods.terms.words import words

#: Of the system, Python and its environments, launchers, offline stores, certificates.
_NAMES = words(
    """
    PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE TZ TZDIR TMPDIR TEMP TMP HOSTNAME
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION
    RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT
    XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME MPLBACKEND MPLCONFIGDIR WANDB_MODE TOKENIZERS_PARALLELISM
    HF_HOME HF_HUB_CACHE HF_HUB_OFFLINE HF_DATASETS_CACHE HF_DATASETS_OFFLINE HUGGINGFACE_HUB_CACHE
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
    LD_LIBRARY_PATH LD_PRELOAD DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH DYLD_INSERT_LIBRARIES
    CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH CC CXX MAX_JOBS NO_COLOR SOURCE_DATE_EPOCH
    """
)
#: Of these, what says who and where this is, besides paths.
_OF_HERE = words("PATH USER LOGNAME HOSTNAME TERM CONDA_DEFAULT_ENV PYENV_VERSION")
#: Of locales, Python, torch and the libraries under it that compute.
_FAMILIES = re.compile(
    r"PYTHON\w*|(LC|TORCH|PYTORCH|TORCHINDUCTOR|TORCHDYNAMO|TRITON|ATEN|TRANSFORMERS|CUDA|CUDNN|CUBLAS|CUBLASLT|NVIDIA"
    r"|NVRTC|NCCL|GLOO|TP|UCX|HIP|HSA|ROCR|ROCM|MIOPEN|GPU|ZE|ONEAPI|OMP|GOMP|KMP|MKL|MKLDNN|DNNL|ONEDNN|OPENBLAS|NVPL"
    r"|BLIS|VECLIB|NUMEXPR|NUMBA|NPY|MALLOC)_\w+"
)


def passed(given: Mapping[str, str], named: Mapping[str, str], *, elsewhere: bool = False) -> dict[str, str]:
    """Return what a run gets of the environment ``given``, and ``named``, which the user has named, on top.

    ``elsewhere``: in a container, where paths of this machine lead nowhere, and there is another user.
    """
    allowed = {
        name: value
        for name, value in given.items()
        if (name in _NAMES or _FAMILIES.fullmatch(name))
        and not (has_secret_name(name) or looks_secret(value))
        and not (elsewhere and (name in _OF_HERE or any(map(os.path.isabs, value.split(os.pathsep)))))
    }
    return {**allowed, **named}
