"""What cuts the graph in torch 2.13; written by ``python -m tests.graph.cuts``, and not by hand.

By where it stands: a module of torch, ``Tensor`` and other classes with their methods and attributes. What is in none
of these tables gives something attached of what is attached.
"""

from __future__ import annotations

from codemods.graph.model.words import words

PLAIN = {
    "torch": words(
        """
        allclose cudnn_is_acceptable equal get_device is_complex is_conj is_distributed is_floating_point is_inference
        is_neg is_nonzero is_same_size is_signed is_storage is_tensor is_vulkan_available manual_seed numel
        result_type sym_constrain_range sym_constrain_range_for_size sym_float sym_int sym_not sym_sqrt typename
        """
    ),
    "torch.nn.functional": words(
        """
        assert_int_or_pair has_torch_function has_torch_function_unary has_torch_function_variadic
        """
    ),
    "Tensor": words(
        """
        allclose const_data_ptr data_ptr dense_dim device dim dim_order dtype element_size equal get_device
        is_coalesced is_complex is_conj is_contiguous is_cpu is_cuda is_distributed is_floating_point is_inference
        is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_nonzero is_pinned is_quantized
        is_same_size is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu item itemsize
        layout name nbytes ndim ndimension nelement numel numpy output_nr requires_grad retains_grad shape size
        sparse_dim storage storage_offset stride tolist untyped_storage
        """
    ),
    "PackedSequence": words(
        """
        is_cuda
        """
    ),
    "Distribution": words(
        """
        batch_shape dim event_shape has_enumerate_support has_rsample param_shape reinterpreted_batch_ndims
        set_default_validate_args
        """
    ),
}
"""No tensor comes out of these."""

INTEGERS = {
    "torch": words(
        """
        all any argmax argmin argsort argwhere bitwise_and bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor bucketize col_indices_copy count_nonzero crow_indices_copy eq gcd gcd_ ge
        greater greater_equal gt hash_tensor isclose isfinite isin isinf isnan isneginf isposinf isreal lcm lcm_ le
        less less_equal logical_and logical_not logical_or logical_xor lt multinomial ne nonzero not_equal
        searchsorted signbit
        """
    ),
    "torch.nn.functional": words(
        """
        one_hot
        """
    ),
    "torch.linalg": words(
        """
        matrix_rank
        """
    ),
    "Tensor": words(
        """
        all any argmax argmin argsort argwhere bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_
        bitwise_not bitwise_not_ bitwise_or bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor
        bitwise_xor_ bool byte char col_indices count_nonzero crow_indices eq gcd gcd_ ge greater greater_equal gt
        hash_tensor indices int isclose isfinite isinf isnan isneginf isposinf isreal lcm lcm_ le less less_equal
        logical_and logical_not logical_or logical_xor long lt multinomial ne nonzero not_equal short signbit
        """
    ),
    "PackedSequence": words(
        """
        batch_sizes sorted_indices unsorted_indices
        """
    ),
}
"""Integers or booleans come out of these."""

FRESH = {
    "torch": words(
        """
        detach detach_ empty_like full_like histc linspace logspace ones_like rand_like randint_like randn_like tensor
        zeros_like
        """
    ),
    "torch.special": words(
        """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
        chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
        legendre_polynomial_p modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
        spherical_bessel_j0
        """
    ),
    "torch.nested": words(
        """
        nested_tensor
        """
    ),
    "Tensor": words(
        """
        data detach detach_ histc new_empty new_full new_ones new_tensor new_zeros
        """
    ),
    "Distribution": words(
        """
        enumerate_support sample sample_n
        """
    ),
}
"""Other tensors without history come out of these, whatever goes in."""

_PATTERNS = {
    "0 1:i": """
        Tensor.lu torch.adaptive_max_pool1d torch.lu torch.max_pool1d_with_indices
        torch.nn.functional.adaptive_max_pool1d torch.nn.functional.adaptive_max_pool1d_with_indices
        torch.nn.functional.adaptive_max_pool2d torch.nn.functional.adaptive_max_pool2d_with_indices
        torch.nn.functional.adaptive_max_pool3d torch.nn.functional.adaptive_max_pool3d_with_indices
        torch.nn.functional.fractional_max_pool2d torch.nn.functional.fractional_max_pool2d_with_indices
        torch.nn.functional.fractional_max_pool3d torch.nn.functional.fractional_max_pool3d_with_indices
        torch.nn.functional.max_pool1d torch.nn.functional.max_pool1d_with_indices torch.nn.functional.max_pool2d
        torch.nn.functional.max_pool2d_with_indices torch.nn.functional.max_pool3d
        torch.nn.functional.max_pool3d_with_indices
    """,
    "values indices:i": """
        Tensor.cummax Tensor.cummin Tensor.kthvalue Tensor.max Tensor.median Tensor.min Tensor.mode Tensor.nanmedian
        Tensor.sort Tensor.topk torch.cummax torch.cummin torch.kthvalue torch.max torch.median torch.min torch.mode
        torch.nanmedian torch.sort torch.topk
    """,
    "mantissa exponent:i": """
        Tensor.frexp torch.frexp
    """,
    "0 1:i 2:i": """
        Tensor.unique Tensor.unique_consecutive torch.unique torch.unique_consecutive
    """,
    "0:i 1:i 2:i": """
        torch.where
    """,
    "L info:i": """
        torch.linalg.cholesky_ex
    """,
    "inverse info:i": """
        torch.linalg.inv_ex
    """,
    "LD pivots:i": """
        torch.linalg.ldl_factor
    """,
    "LD pivots:i info:i": """
        torch.linalg.ldl_factor_ex
    """,
    "solution residuals rank:i singular_values:f": """
        torch.linalg.lstsq
    """,
    "P:f L U": """
        torch.linalg.lu
    """,
    "LU pivots:i": """
        torch.linalg.lu_factor
    """,
    "LU pivots:i info:i": """
        torch.linalg.lu_factor_ex
    """,
    "result info:i": """
        torch.linalg.solve_ex
    """,
}
PARTS = {
    path: tuple((name, sort) for name, _, sort in (part.partition(":") for part in pattern.split()))
    for pattern, paths in _PATTERNS.items()
    for path in paths.split()
}
"""What gives several, some of them cut: the name of each element, or its place, and its sort where it is cut: ``i`` for
integers, ``f`` for other tensors, ``p`` for what is none. Some give only the first of them."""

SOMETIMES = words(
    """
    Tensor.max Tensor.median Tensor.min Tensor.nanmedian Tensor.unique Tensor.unique_consecutive torch.max
    torch.median torch.min torch.nanmedian torch.nn.functional.adaptive_max_pool1d
    torch.nn.functional.adaptive_max_pool2d torch.nn.functional.adaptive_max_pool3d
    torch.nn.functional.fractional_max_pool2d torch.nn.functional.fractional_max_pool3d torch.nn.functional.max_pool1d
    torch.nn.functional.max_pool2d torch.nn.functional.max_pool3d torch.unique torch.unique_consecutive torch.where
    """
)
"""Those of them that may give one alone, as their arguments say."""
