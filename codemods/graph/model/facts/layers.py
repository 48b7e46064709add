"""Classes of ``torch.nn``: what they own, return and look like."""

from __future__ import annotations

from codemods.terms.words import words

MODULES_WITH_PARAMETERS = words(
    """
    Linear Bilinear LazyLinear Conv1d Conv2d Conv3d LazyConv1d LazyConv2d LazyConv3d ConvTranspose1d ConvTranspose2d
    ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d LayerNorm
    GroupNorm RMSNorm RNN LSTM GRU RNNCell LSTMCell GRUCell Embedding EmbeddingBag MultiheadAttention Transformer
    TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer PReLU
    AdaptiveLogSoftmaxWithLoss
    """
)
"""Classes of ``torch.nn`` that own parameters (docs: torch.nn)."""

MODULES_WITHOUT_PARAMETERS = words(
    """
    ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid Tanh Softmax LogSoftmax Softmax2d Softplus Softsign
    Softmin Hardtanh Hardsigmoid Hardswish Hardshrink Softshrink Tanhshrink LogSigmoid Threshold GLU Identity Dropout
    Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d
    AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
    AdaptiveMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d LPPool1d LPPool2d FractionalMaxPool2d Upsample
    UpsamplingNearest2d UpsamplingBilinear2d PixelShuffle PixelUnshuffle ChannelShuffle Flatten Unflatten Fold Unfold
    ZeroPad1d ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d
    ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d CosineSimilarity PairwiseDistance InstanceNorm1d
    InstanceNorm2d InstanceNorm3d LocalResponseNorm
    """
)
"""Classes of ``torch.nn`` without parameters in their default form (docs: torch.nn)."""

LOSS_MODULES = words(
    """
    L1Loss MSELoss CrossEntropyLoss CTCLoss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss BCELoss
    BCEWithLogitsLoss MarginRankingLoss HingeEmbeddingLoss MultiLabelMarginLoss HuberLoss SmoothL1Loss SoftMarginLoss
    MultiLabelSoftMarginLoss CosineEmbeddingLoss MultiMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss
    """
)
"""Loss classes of ``torch.nn``; 0-dimensional output unless ``reduction="none"`` (docs: torch.nn)."""

MODULE_CONTAINERS = words("Sequential ModuleList ModuleDict ParameterList ParameterDict")

BASE_LAYERS = (
    MODULES_WITH_PARAMETERS
    | {name for name in MODULES_WITHOUT_PARAMETERS if not name.startswith("InstanceNorm")}
    | LOSS_MODULES
    | {"Sequential", "ModuleList", "ModuleDict"}
)
"""Classes of ``torch.nn`` that pass nothing unknown on to their subclasses."""

ALWAYS_WEIGHTED = words(
    """
    Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag PReLU
    """
)
"""Layers that have a ``weight`` however they are made (docs: torch.nn)."""

LAYER_SETTINGS = words(
    """
    in_channels out_channels kernel_size stride padding output_padding dilation groups padding_mode in_features
    out_features in1_features in2_features num_features eps momentum affine track_running_stats num_embeddings
    embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse input_size hidden_size num_layers batch_first
    bidirectional proj_size normalized_shape elementwise_affine num_groups num_channels embed_dim num_heads head_dim
    negative_slope inplace reduction ignore_index label_smoothing
    """
)
"""Attributes of layers that hold what they were made with: numbers, texts, and tuples of them (docs: torch.nn)."""

TUPLE_OUTPUT = {"LSTM": 2, "GRU": 2, "RNN": 2, "LSTMCell": 2, "MultiheadAttention": 2}
"""Modules that return (output, second) (docs)."""

PAIR_STATE = words("LSTM LSTMCell")
"""Recurrent modules whose state is a tuple (h, c) (docs)."""

RECURRENT = words("LSTM GRU RNN LSTMCell GRUCell RNNCell")

PACKING = frozenset(
    f"torch.nn.utils.rnn.{name}" for name in ("pack_padded_sequence", "pack_sequence", "PackedSequence")
)
"""What makes a packed sequence, whose ``data`` is the attached tensor itself (docs)."""

TRANSPARENT_MODULE_METHODS = words(
    """
    to cuda cpu float double half bfloat16 train eval type xpu share_memory apply compile requires_grad_ module
    to_empty ipu hpu mps
    """
)
"""Methods of ``nn.Module`` that return the module itself (docs: torch.nn.Module)."""

MODULE_NAMES = words(
    """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double
    dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu
    load_state_dict modules mtia named_buffers named_children named_modules named_parameters parameters
    register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter register_state_dict_post_hook
    register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory state_dict to
    to_empty train training type xpu zero_grad
    """
)
"""What every ``nn.Module`` has as an attribute (source: ``dir(nn.Module())``)."""

CHECKS_OF_LAYERS = words(
    """
    _check_input_dim _check_non_zero_input_channels check_input check_forward_args check_hidden_size flatten_parameters
    """
)
"""Methods of torch's own layers that look at what they are given, and keep nothing of it (source: torch/nn)."""

MODULE_EVIDENCE = words(
    """
    eval train parameters named_parameters zero_grad state_dict load_state_dict named_modules modules children
    named_children requires_grad_ register_forward_hook register_parameter register_buffer
    """
)
"""Calls that only an ``nn.Module`` (or something that behaves like one) has together with being called itself
(docs)."""

TRANSPARENT_WRAPPERS = words(
    """
    torch.nn.DataParallel torch.nn.parallel.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile
    torch.jit.script torch.nn.SyncBatchNorm.convert_sync_batchnorm torch.nn.utils.spectral_norm inspect.unwrap
    torch.nn.utils.weight_norm torch.nn.utils.parametrizations.spectral_norm
    torch.nn.utils.parametrizations.weight_norm torch.quantization.prepare torch.quantization.convert
    torch.distributed.fsdp.FullyShardedDataParallel copy.deepcopy copy.copy torchvision.models.feature_extraction
    apex.parallel.DistributedDataParallel apex.parallel.convert_syncbn_model
    """
)
"""Calls that return their module or function, possibly wrapped; its forward builds the same graph."""

WRAPPING_LAYERS = words("DataParallel parallel.DataParallel parallel.DistributedDataParallel")
"""Those among them that classes derive from, by their names in ``torch.nn``: the model lies in ``module`` (their
sources)."""

LEAVING_WEIGHTS = words("torch.nn.utils.weight_norm torch.nn.utils.spectral_norm")
"""Of these, those after which each forward leaves the weight that it computed, with its graph, as an attribute
(source: torch/nn/utils/weight_norm.py)."""

OF_INDICES = frozenset({"Embedding", "EmbeddingBag"})
"""Modules whose first input is whole numbers, which have no graph (docs: torch.nn.Embedding)."""

OTHER_KERNELS = words(
    """
    LSTM GRU MultiheadAttention TransformerEncoder TransformerEncoderLayer TransformerDecoder Transformer
    """
)
"""Modules that choose other kernels without gradients: results differ by 1e-8 to 5e-7 (ran; GRU was seen identical)."""

PADDING_MASKS = {"TransformerEncoder": 2, "Transformer": 5}
"""At which position a ``forward`` takes its ``src_key_padding_mask``. Given one, and without gradients, the encoder
leaves zeros at masked positions, where it computes something otherwise (ran)."""

NAMED_PARTS = {
    ("Transformer", "encoder"): "TransformerEncoder",
    ("Transformer", "decoder"): "TransformerDecoder",
    ("TransformerEncoderLayer", "self_attn"): "MultiheadAttention",
    ("TransformerDecoderLayer", "self_attn"): "MultiheadAttention",
}
"""Attributes of modules that are modules with names of their own (docs)."""

REPEATABLE_MODULES = (
    MODULES_WITHOUT_PARAMETERS
    | LOSS_MODULES
    | words("Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d Embedding LayerNorm GroupNorm")
) - words("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout FractionalMaxPool2d")
"""Modules that draw no random numbers and keep no statistics: running them once more changes nothing else (docs)."""
