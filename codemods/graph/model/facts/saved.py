"""What operations and layers save for the backward."""

from __future__ import annotations

from codemods.terms.words import words

SAVES_NOTHING = words(
    """
    add sub rsub neg sum mean cat concat concatenate stack hstack vstack view view_as reshape reshape_as transpose
    permute t mT T squeeze unsqueeze expand expand_as repeat contiguous flatten unflatten clone to cpu cuda float double
    half bfloat16 type type_as split chunk unbind narrow select movedim swapaxes flip roll real unfold diagonal
    tile broadcast_to add_ sub_ squeeze_ unsqueeze_ unbind tensor_split ravel view_as_real view_as_complex
    sign round floor ceil trunc bernoulli
    """
)
"""Operations whose backward needs no saved tensor: a second backward through them runs, whether or not the first one
kept the graph (derivatives; ran, one by one, in the tests)."""

SUMS = words("Add Sub")
"""Operators that save nothing either; a product with a number does save one (ran)."""

SAVES_OUTPUT = words(
    """
    exp sigmoid tanh relu softmax log_softmax sqrt rsqrt reciprocal expm1 tan Sigmoid Tanh ReLU Softmax LogSoftmax
    """
)
"""Operations and layers that save their output for the backward (derivatives; ran)."""

SAVES_INPUT = words(
    """
    Pow pow square log log1p log2 sin cos abs clamp prod var std norm logsumexp leaky_relu softplus elu gelu silu selu
    mse_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits Linear Conv1d Conv2d Conv3d ConvTranspose1d
    ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm LeakyReLU Softplus ELU GELU
    SiLU MSELoss SmoothL1Loss HuberLoss BCEWithLogitsLoss
    """
)
"""Operations and layers that save their input for the backward (derivatives; ran)."""

SAVES_BOTH = words("Mult mul MatMult matmul mm bmm")
"""Operations that save both inputs for the backward, where both are attached (derivatives; ran)."""

WEIGHT_FOR_INPUT = words(
    """
    Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyLinear LazyConv1d
    LazyConv2d LazyConv3d RNNCell LSTMCell GRUCell BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LayerNorm
    GroupNorm RMSNorm
    PReLU Sequential
    """
)
"""Modules whose backward reads their weight where their input needs a gradient (derivatives; not for plain input)."""

WEIGHT_WITHIN = words(
    """
    RNN LSTM GRU MultiheadAttention Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer
    TransformerDecoderLayer
    """
)
"""Modules of several layers or times: their backward reads a weight also where their input is plain (ran)."""

SAVES_OTHER = words("Mult Div MatMult mul multiply div divide matmul mm bmm mv linear conv1d conv2d conv3d einsum dot")
"""Operations of two tensors that keep each for the gradient of the other (derivatives)."""

SAVES_SELF = words(
    "Pow pow norm abs square log log2 log10 log1p sin cos prod std var softplus gelu silu elu leaky_relu"
)
"""Operations of one tensor that keep the tensor itself, not their result (derivatives)."""
