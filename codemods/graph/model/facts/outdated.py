"""Names and arguments of older versions of torch, and what took their place."""

from __future__ import annotations

from codemods.terms.words import words

BEFORE_FIRST_ELEMENT = words("cpu cuda float double numpy tolist detach clone")
"""What old scripts put between a loss and the ``[0]`` that takes its number."""

RENAMED_CALLS = {
    "torch.nn.utils.clip_grad_norm": "torch.nn.utils.clip_grad_norm_",
    **{
        f"torch.nn.init.{name}": f"torch.nn.init.{name}_"
        for name in (
            *("uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform"),
            *("kaiming_normal", "orthogonal", "sparse"),
        )
    },
    "torch.matrix_rank": "torch.linalg.matrix_rank",
    "torchvision.transforms.Scale": "torchvision.transforms.Resize",
    "torchvision.transforms.RandomSizedCrop": "torchvision.transforms.RandomResizedCrop",
}
"""Calls that have another name today and do the same (docs; ran: torch 2.13 warns, and refuses ``matrix_rank``,
torchvision 0.28 the last two: they were subclasses of their successors that only warned, until 0.13)."""

RENAMED_ARGUMENTS = {"torch.matrix_rank": ("symmetric", "hermitian")}
"""Arguments of these that have another name today, too (docs)."""

GONE_CALLS = frozenset(path for path in RENAMED_CALLS if path.startswith("torchvision.")) | {"torch.matrix_rank"}
"""Those of them that raise today; the others only warn."""

REMOVED_CALLS = {
    "torch.symeig": "torch.linalg.eigh",
    "torch.eig": "torch.linalg.eig",
    "torch.lstsq": "torch.linalg.lstsq",
    "torch.gels": "torch.linalg.lstsq",
    "torch.solve": "torch.linalg.solve",
    "torch.gesv": "torch.linalg.solve",
    "torch.potrf": "torch.linalg.cholesky",
    "torch.potri": "torch.cholesky_inverse",
    "torch.potrs": "torch.cholesky_solve",
    "torch.trtrs": "torch.linalg.solve_triangular",
    "torch.btrifact": "torch.linalg.lu_factor",
    "torch.btrisolve": "torch.linalg.lu_solve",
    "torch.rfft": "torch.fft.rfft",
    "torch.irfft": "torch.fft.irfft",
    "torch.ifft": "torch.fft.ifft",
}
"""Calls that torch 2.13 refuses, and what took their place with other arguments or results (ran)."""

SIZE_AVERAGE_AT = {
    **dict.fromkeys(("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss"), 1),
    **dict.fromkeys(("MSELoss", "L1Loss", "SmoothL1Loss", "KLDivLoss", "SoftMarginLoss"), 0),
    **dict.fromkeys(("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"), 3),
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "kl_div", "soft_margin_loss"), 2),
}
"""Where ``size_average`` stands among the positional arguments (docs)."""

OLD_METHODS = words("cuda to copy_ type next masked_fill masked_fill_ masked_select masked_scatter masked_scatter_")
"""Methods of which some forms are refused today: ``async=``, ``iter(loader).next()``, masks of bytes (ran)."""
