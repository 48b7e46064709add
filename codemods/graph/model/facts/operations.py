"""Functions and methods of tensors: what comes out of them, and whether it is part of the graph."""

from __future__ import annotations

from codemods.graph.model.cutting import INTEGERS, PARTS, PLAIN
from codemods.graph.model.facts.memory import MAY_COPY, VIEWS
from codemods.graph.model.facts.saved import SAVES_NOTHING, SAVES_SELF
from codemods.terms.words import words

SCALAR_FUNCTIONS = words(
    """
    l1_loss mse_loss cross_entropy ctc_loss nll_loss poisson_nll_loss gaussian_nll_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits margin_ranking_loss hinge_embedding_loss multilabel_margin_loss huber_loss
    smooth_l1_loss soft_margin_loss multilabel_soft_margin_loss cosine_embedding_loss multi_margin_loss
    triplet_margin_loss
    """
)
"""Functions of ``torch.nn.functional`` that reduce to 0 dimensions unless ``reduction="none"`` (docs)."""

REDUCTIONS = words("sum mean norm prod std var logsumexp nansum nanmean amax amin dist trace")
"""Reduce to 0 dimensions when called without a dimension (docs: torch.Tensor)."""

REDUCE_AT = 3
"""From where on the ``reduce`` of old stands among the positional arguments of a loss function (docs)."""

ELEMENTWISE = words(
    "neg abs exp log sqrt square pow add sub mul div clamp relu sigmoid tanh softplus log1p sign round floor ceil trunc"
)
"""Operations whose result has the shape that their operands have together (docs: broadcasting semantics)."""

KEEPS_SHAPE = words("clone contiguous to cpu cuda float double half bfloat16 type type_as")
"""Methods whose result has the shape of the tensor, whatever they are given (docs: torch.Tensor)."""

LIKE_ANOTHER = words("type_as view_as expand_as reshape_as to")
"""Methods that look at the type, the shape or the device of a tensor that they are given: its graph is no part of what
they make (ran)."""

OF_SIZES = words(
    """
    view reshape expand repeat tile unsqueeze squeeze permute transpose swapaxes swapdims movedim moveaxis flatten
    unflatten narrow select chunk split unbind unfold roll flip repeat_interleave index_select sum mean std var
    logsumexp softmax log_softmax cumsum amax amin sum_to_size
    interpolate upsample pad dropout dropout1d dropout2d dropout3d alpha_dropout avg_pool1d avg_pool2d avg_pool3d
    max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d pixel_shuffle
    """
)
"""Methods and functions that get one tensor, and else sizes, dimensions, whole numbers, rates and types: none of these
has a graph (docs)."""

ZERO_GRADIENT = words("sign sgn round floor ceil trunc bernoulli")
"""Step functions and draws whose gradient is zero: they are part of the graph nevertheless, and backward walks on
behind them (ran)."""

WITHOUT_GRADIENT = INTEGERS["torch"] | INTEGERS["Tensor"]
"""Results never carry gradients: integers, booleans."""

WITH_INDICES = frozenset(
    path.rpartition(".")[2] for path, parts in PARTS.items() if [name for name, _ in parts] == ["values", "indices"]
)
"""Return (values, indices) when given a dimension; indices carry no gradients."""

PLAIN_METHODS = PLAIN["Tensor"] | words("type_as_string __len__ names")
"""Methods and attributes of tensors that leave the world of tensors."""

FACTORIES = words(
    """
    tensor zeros ones rand randn randint randperm arange range linspace logspace eye empty full zeros_like ones_like
    rand_like randn_like randint_like empty_like full_like from_numpy normal Tensor FloatTensor DoubleTensor LongTensor
    IntTensor ByteTensor BoolTensor HalfTensor ShortTensor CharTensor new_zeros new_ones new_tensor new_full new_empty
    new load multinomial poisson cartesian_prod combinations tril_indices triu_indices hann_window
    frombuffer empty_strided complex64 from_file
    """
)
"""Make fresh tensors without history (docs); ``requires_grad=True`` makes a leaf. ``HANDING_ON`` and ``DRAWN_OF`` keep
the history of a tensor that they are given."""

HANDING_ON = words("Tensor FloatTensor DoubleTensor HalfTensor new")
"""Constructors that make an alias of a tensor that is their only argument, with its history; of lists and sizes they
make fresh tensors, as ``torch.tensor`` and ``new_tensor`` do of anything (ran)."""

TAKES_NUMBERS = FACTORIES | words(
    "as_tensor asarray is_tensor save pow float_power xlogy result_type can_cast scalar_tensor set_grad_enabled "
    "add addmm sub subtract mul multiply div divide true_divide floor_divide remainder isin sym_sum polygamma zeta "
    "xlog1py bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift chebyshev_polynomial_t "
    "chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he "
    "laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
    "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w bartlett_window blackman_window hamming_window "
    "kaiser_window fftfreq rfftfreq sparse_coo_tensor"
)
"""Functions that a number may be given where most others want a tensor (all were called with one: ran)."""

DRAWN_OF = words("normal poisson cartesian_prod combinations")
"""Functions among the factories whose result is part of the graph of the tensors that they are given (ran)."""

RANDOM_FACTORIES = words(
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson"
)

TENSOR_METHODS = frozenset(
    name
    for name in frozenset().union(
        PLAIN_METHODS, WITHOUT_GRADIENT, REDUCTIONS, ELEMENTWISE, KEEPS_SHAPE, SAVES_NOTHING, VIEWS, MAY_COPY
    )
    if not name.endswith("_")
)
"""Methods of tensors that change nothing."""

BOUND_METHODS = frozenset().union(
    *(PLAIN_METHODS, WITHOUT_GRADIENT, REDUCTIONS, ELEMENTWISE, KEEPS_SHAPE, SAVES_NOTHING, VIEWS, MAY_COPY),
    words("backward register_hook retain_grad"),
)
"""Methods of tensors that are known as such where they are not called at once."""

FOLDING = words("MatMult matmul linear")
"""Products of several matrices by one, whose kernel depends on whether that one asks for gradients (source: should_fold
in aten/src/ATen/native/LinearAlgebra.cpp)."""

NOT_LINEAR = SAVES_SELF | words(
    """
    clamp clamp_min clamp_max clip sign sgn renorm round floor ceil trunc nan_to_num exp sqrt rsqrt tanh sigmoid softmax
    log_softmax relu hardtanh threshold topk sort argsort argmax argmin max min amax amin median quantile normalize
    maximum minimum fmod remainder reciprocal logsumexp cumprod isnan isinf isfinite any all item
    """
)
"""Operations whose result for a sum is not the sum of their results."""

RANDOM_CALLS = RANDOM_FACTORIES | words(
    """
    dropout dropout_ alpha_dropout rsample sample normal_ uniform_ bernoulli_ random_ exponential_ random shuffle choice
    gumbel_softmax rrelu feature_dropout manual_seed seed
    """
)
"""Functions and methods that draw random numbers (docs)."""

LOOKING_CALLS = words(
    """
    item detach cpu numpy tolist append float format extend set_description set_postfix keys size dim int str len print
    round
    """
)
"""Builtins, and methods of tensors, containers and progress bars, that only look at values which are there."""

DATA_CALLS = words(
    """
    next to cuda randn rand randint zeros ones full tensor empty zeros_like ones_like randn_like normal_ uniform_ fill_
    requires_grad_ view reshape long type
    """
)
"""Functions and methods that make data, perhaps random, and touch no parameters."""
