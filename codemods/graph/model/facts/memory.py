"""What shares the memory of a tensor, and what writes to it."""

from __future__ import annotations

from codemods.terms.words import words

OVERWRITES = words("copy_ zero_ fill_ normal_ uniform_ random_ exponential_ bernoulli_ cauchy_ geometric_ log_normal_")
"""Methods that fill a tensor: it stays part of its graph, and that gets gradients of zero (ran)."""

VIEWS = words(
    """
    view view_as squeeze unsqueeze transpose permute t narrow select expand expand_as unflatten diagonal movedim
    swapaxes unfold detach requires_grad_
    """
)
"""Methods whose result shares the memory of the tensor (docs: Tensor Views)."""

MAY_COPY = words("reshape reshape_as contiguous flatten to cpu cuda float double half type type_as long int")
"""Methods whose result is the tensor, a view of it or a copy, as it happens (docs: torch.Tensor)."""

MAY_SHARE = (VIEWS | MAY_COPY) - {"requires_grad_"} | words(
    """
    atleast_1d atleast_2d atleast_3d ravel real moveaxis swapdims positive resolve_conj resolve_neg sum_to_size to_dense
    as_tensor asarray view_as_real view_as_complex as_strided broadcast_to index resize module_load unbind split chunk
    tensor_split hsplit vsplit dsplit unsafe_split unsafe_chunk from_dlpack mT T imag relu relu6 elu selu celu
    leaky_relu rrelu hardtanh hardswish hardsigmoid silu mish threshold dropout dropout1d dropout2d dropout3d
    alpha_dropout feature_alpha_dropout adjoint conj conj_physical dequantize broadcast_tensors einsum mH H
    """
)
"""Functions whose result may share the memory of their first argument, or be that argument (ran)."""

INPLACE_AT = {
    **dict.fromkeys(("relu", "relu6", "selu", "hardsigmoid", "hardswish", "silu", "mish"), 1),
    **dict.fromkeys(("elu", "celu", "leaky_relu"), 2),
    **dict.fromkeys(("threshold", "hardtanh", "dropout", "alpha_dropout", "feature_alpha_dropout"), 3),
    **dict.fromkeys(("dropout1d", "dropout2d", "dropout3d"), 3),
    "rrelu": 4,
}
"""At which position functions of ``torch.nn.functional`` take ``inplace`` (their signatures)."""

INPLACE_OF_LAYER = {
    **dict.fromkeys(("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish"), 0),
    **dict.fromkeys(("ELU", "CELU", "LeakyReLU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), 1),
    **dict.fromkeys(("AlphaDropout", "FeatureAlphaDropout"), 1),
    **dict.fromkeys(("Hardtanh", "RReLU", "Threshold"), 2),
}
"""At which position modules take ``inplace`` (their signatures)."""

SHARING_LAYERS = frozenset(INPLACE_OF_LAYER) | {"Identity", "Flatten", "Unflatten"}
"""Modules whose output may share the memory of their input, or be that input."""

IN_PLACE_OPERATORS = words("iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor iconcat")
"""Functions of ``operator``, and special methods, that change what they get."""

CHANGES_SHAPE = words(
    "unsqueeze squeeze resize resize_as t transpose swapaxes swapdims set as_strided rename sparse_resize"
)
"""Methods that with a ``_`` after them change the tensor object, not its memory (docs: torch.Tensor)."""

TURNED = words("transpose permute swapaxes swapdims movedim moveaxis mT expand expand_as unfold")
"""Views whose memory is not in the order of their elements; ``t`` and ``T`` are of matrices, which nothing folds."""

SHARING_MEMORY = words(
    """
    view view_as reshape reshape_as transpose permute t mT T squeeze unsqueeze expand expand_as contiguous flatten
    unflatten to cpu cuda float double type type_as split chunk unbind narrow select movedim swapaxes real imag unfold
    diagonal getitem view_as_real view_as_complex parameters_to_vector tensor_split ravel setitem as_tensor asarray
    Tensor FloatTensor DoubleTensor HalfTensor new
    """
)
"""Operations whose result may share memory with its input, and so follows what is written to that (docs)."""

COLLECTIVES = words(
    """
    all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single broadcast irecv recv reduce reduce_scatter
    reduce_scatter_tensor scatter
    """
)
"""Functions of ``torch.distributed`` that write to the tensors they are given first (docs: torch.distributed)."""

ARRAY_CHANGES = words("fill sort partition put resize itemset setfield byteswap")
"""Methods of arrays that write to them, or may."""

ARRAY_VIEWS = words("reshape ravel view transpose squeeze swapaxes astype diagonal")
"""Methods of arrays whose results share their memory, or may."""

ARRAY_WRITERS = words("copyto put place putmask fill_diagonal put_along_axis shuffle")
"""Functions of numpy that write to the first array that they are given."""
