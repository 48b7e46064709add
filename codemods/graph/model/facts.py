"""Facts about torch, as data: what its calls do to the autograd graph.

Each table names its source. "docs" are the PyTorch 2.x API pages (``torch``, ``torch.Tensor``, ``torch.nn``,
``torch.autograd``); "derivatives" is ``tools/autograd/derivatives.yaml`` of PyTorch, which says what each operation
saves; "ran" was tried on torch 2.13 (CPU). What ends a graph stands in :mod:`codemods.graph.model.cutting`.
"""

from __future__ import annotations

from pathlib import Path

from codemods.graph.model.cutting import INTEGERS, PARTS, PLAIN


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES_WITH_PARAMETERS = _words(
    """
    Linear Bilinear LazyLinear Conv1d Conv2d Conv3d LazyConv1d LazyConv2d LazyConv3d ConvTranspose1d ConvTranspose2d
    ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LazyBatchNorm1d LazyBatchNorm2d LayerNorm
    GroupNorm RMSNorm RNN LSTM GRU RNNCell LSTMCell GRUCell Embedding EmbeddingBag MultiheadAttention Transformer
    TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer PReLU
    AdaptiveLogSoftmaxWithLoss
    """
)
"""Classes of ``torch.nn`` that own parameters (docs: torch.nn)."""

MODULES_WITHOUT_PARAMETERS = _words(
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

LOSS_MODULES = _words(
    """
    L1Loss MSELoss CrossEntropyLoss CTCLoss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss BCELoss
    BCEWithLogitsLoss MarginRankingLoss HingeEmbeddingLoss MultiLabelMarginLoss HuberLoss SmoothL1Loss SoftMarginLoss
    MultiLabelSoftMarginLoss CosineEmbeddingLoss MultiMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss
    """
)
"""Loss classes of ``torch.nn``; 0-dimensional output unless ``reduction="none"`` (docs: torch.nn)."""

MODULE_CONTAINERS = _words("Sequential ModuleList ModuleDict ParameterList ParameterDict")

BASE_LAYERS = (
    MODULES_WITH_PARAMETERS
    | {name for name in MODULES_WITHOUT_PARAMETERS if not name.startswith("InstanceNorm")}
    | LOSS_MODULES
    | {"Sequential", "ModuleList", "ModuleDict"}
)
"""Classes of ``torch.nn`` of which it is known what a class gets that derives from them."""

ALWAYS_WEIGHTED = _words(
    """
    Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag PReLU
    """
)
"""Layers that have a ``weight`` however they are made (docs: torch.nn)."""

LAYER_SETTINGS = _words(
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

PAIR_STATE = _words("LSTM LSTMCell")
"""Recurrent modules whose state is a tuple (h, c) (docs)."""

RECURRENT = _words("LSTM GRU RNN LSTMCell GRUCell RNNCell")

PACKING = frozenset(
    f"torch.nn.utils.rnn.{name}" for name in ("pack_padded_sequence", "pack_sequence", "PackedSequence")
)
"""What makes a packed sequence, whose ``data`` is the attached tensor itself (docs)."""

SCALAR_FUNCTIONS = _words(
    """
    l1_loss mse_loss cross_entropy ctc_loss nll_loss poisson_nll_loss gaussian_nll_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits margin_ranking_loss hinge_embedding_loss multilabel_margin_loss huber_loss
    smooth_l1_loss soft_margin_loss multilabel_soft_margin_loss cosine_embedding_loss multi_margin_loss
    triplet_margin_loss
    """
)
"""Functions of ``torch.nn.functional`` that reduce to 0 dimensions unless ``reduction="none"`` (docs)."""

REDUCTIONS = _words("sum mean norm prod std var logsumexp nansum nanmean amax amin dist trace")
"""Reduce to 0 dimensions when called without a dimension (docs: torch.Tensor)."""

REDUCE_AT = 3
"""From where on the ``reduce`` of old stands among the positional arguments of a loss function (docs)."""

ELEMENTWISE = _words(
    "neg abs exp log sqrt square pow add sub mul div clamp relu sigmoid tanh softplus log1p sign round floor ceil trunc"
)
"""Operations whose result has the shape that their operands have together (docs: broadcasting semantics)."""

KEEPS_SHAPE = _words("clone contiguous to cpu cuda float double half bfloat16 type type_as")
"""Methods whose result has the shape of the tensor, whatever they are given (docs: torch.Tensor)."""

LIKE_ANOTHER = _words("type_as view_as expand_as reshape_as to")
"""Methods that look at the type, the shape or the device of a tensor that they are given: its graph is no part of what
they make (ran)."""

ZERO_GRADIENT = _words("sign sgn round floor ceil trunc bernoulli")
"""Step functions and draws whose gradient is zero: they are part of the graph nevertheless, and backward walks on
behind them (ran)."""

WITHOUT_GRADIENT = INTEGERS["torch"] | INTEGERS["Tensor"]
"""Results never carry gradients: integers, booleans."""

WITH_INDICES = frozenset(
    path.rpartition(".")[2] for path, parts in PARTS.items() if [name for name, _ in parts] == ["values", "indices"]
)
"""Return (values, indices) when given a dimension; indices carry no gradients."""

PLAIN_METHODS = PLAIN["Tensor"] | _words("type_as_string __len__ names")
"""Methods and attributes of tensors that leave the world of tensors."""

FACTORIES = _words(
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

HANDING_ON = _words("Tensor FloatTensor DoubleTensor HalfTensor new")
"""Constructors that make an alias of a tensor that is their only argument, with its history; of lists and sizes they
make fresh tensors, as ``torch.tensor`` and ``new_tensor`` do of anything (ran)."""

TAKES_NUMBERS = FACTORIES | _words(
    "as_tensor asarray is_tensor save pow float_power xlogy result_type can_cast scalar_tensor set_grad_enabled"
)
"""Functions that a number may be given where most others want a tensor."""

DRAWN_OF = _words("normal poisson cartesian_prod combinations")
"""Functions among the factories whose result is part of the graph of the tensors that they are given (ran)."""

RANDOM_FACTORIES = _words(
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson"
)

SAVES_NOTHING = _words(
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

SUMS = _words("Add Sub")
"""Operators that save nothing either; a product with a number does save one (ran)."""

OVERWRITES = _words("copy_ zero_ fill_ normal_ uniform_ random_ exponential_ bernoulli_ cauchy_ geometric_ log_normal_")
"""Methods that fill a tensor: it stays part of its graph, and that gets gradients of zero (ran)."""

VIEWS = _words(
    """
    view view_as squeeze unsqueeze transpose permute t narrow select expand expand_as unflatten diagonal movedim
    swapaxes unfold detach requires_grad_
    """
)
"""Methods whose result shares the memory of the tensor (docs: Tensor Views)."""

MAY_COPY = _words("reshape reshape_as contiguous flatten to cpu cuda float double half type type_as long int")
"""Methods whose result is the tensor, a view of it or a copy, as it happens (docs: torch.Tensor)."""

MAY_SHARE = (VIEWS | MAY_COPY) - {"requires_grad_"} | _words(
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

IN_PLACE_OPERATORS = _words("iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor iconcat")
"""Functions of ``operator``, and special methods, that change what they get."""

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
    _words("backward register_hook retain_grad"),
)
"""Methods of tensors that are known as such where they are not called at once."""

SAVES_OUTPUT = _words(
    """
    exp sigmoid tanh relu softmax log_softmax sqrt rsqrt reciprocal expm1 tan Sigmoid Tanh ReLU Softmax LogSoftmax
    """
)
"""Operations and layers that save their output for the backward (derivatives; ran)."""

SAVES_INPUT = _words(
    """
    Pow pow square log log1p log2 sin cos abs clamp prod var std norm logsumexp leaky_relu softplus elu gelu silu selu
    mse_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits Linear Conv1d Conv2d Conv3d ConvTranspose1d
    ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm LeakyReLU Softplus ELU GELU
    SiLU MSELoss SmoothL1Loss HuberLoss BCEWithLogitsLoss
    """
)
"""Operations and layers that save their input for the backward (derivatives; ran)."""

SAVES_BOTH = _words("Mult mul MatMult matmul mm bmm")
"""Operations that save both inputs for the backward, where both are attached (derivatives; ran)."""

CHANGES_SHAPE = _words(
    "unsqueeze squeeze resize resize_as t transpose swapaxes swapdims set as_strided rename sparse_resize"
)
"""Methods that with a ``_`` behind them change the tensor object, not its memory (docs: torch.Tensor)."""

BEFORE_FIRST_ELEMENT = _words("cpu cuda float double numpy tolist detach clone")
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

OLD_METHODS = _words("cuda to copy_ type next masked_fill masked_fill_ masked_select masked_scatter masked_scatter_")
"""Methods of which some forms are refused today: ``async=``, ``iter(loader).next()``, masks of bytes (ran)."""

DETACHING = _words("detach detach_")

TRANSPARENT_MODULE_METHODS = _words(
    """
    to cuda cpu float double half bfloat16 train eval type xpu share_memory apply compile requires_grad_ module
    to_empty ipu hpu mps
    """
)
"""Methods of ``nn.Module`` that return the module itself (docs: torch.nn.Module)."""

CHECKS_OF_LAYERS = _words(
    """
    _check_input_dim _check_non_zero_input_channels check_input check_forward_args check_hidden_size flatten_parameters
    """
)
"""Methods of torch's own layers that look at what they are given, and keep and return nothing of it (source: torch/nn)."""

MODULE_EVIDENCE = _words(
    """
    eval train parameters named_parameters zero_grad state_dict load_state_dict named_modules modules children
    named_children requires_grad_ register_forward_hook register_parameter register_buffer
    """
)
"""Calls that only an ``nn.Module`` (or something that behaves like one) has together with being called itself
(docs)."""

TRANSPARENT_WRAPPERS = _words(
    """
    torch.nn.DataParallel torch.nn.parallel.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile
    torch.jit.script torch.nn.SyncBatchNorm.convert_sync_batchnorm torch.nn.utils.spectral_norm
    torch.nn.utils.weight_norm torch.nn.utils.parametrizations.spectral_norm
    torch.nn.utils.parametrizations.weight_norm torch.quantization.prepare torch.quantization.convert
    torch.distributed.fsdp.FullyShardedDataParallel copy.deepcopy copy.copy torchvision.models.feature_extraction
    apex.parallel.DistributedDataParallel apex.parallel.convert_syncbn_model
    """
)
"""Calls that return their module or function, possibly wrapped; its forward builds the same graph."""

CALLING_LATER = _words("weakref.finalize weakref.ref atexit.register threading.Timer signal.signal")
"""Functions of Python that call what they get at a moment that is not followed (docs)."""

UNFOLLOWED_METHODS = _words(
    """
    __bool__ __len__ __str__ __repr__ __format__ __contains__ __hash__ __del__ __float__ __int__ __complex__ __index__
    __round__ __sizeof__ __bytes__ __dir__ __length_hint__ __array__ __reduce__ __reduce_ex__ __getstate__ __setstate__
    __copy__ __deepcopy__ __get__ __set__ __delete__ __set_name__ __delattr__ __delitem__ __missing__ __instancecheck__
    __subclasscheck__ __class_getitem__ __fspath__ __lt__ __le__ __gt__ __ge__ __ne__
    """
)
"""Special methods that Python calls by itself, and the simulation does not (docs: data model)."""

OF_COROUTINES = _words("send throw __await__")
"""Methods of coroutines, which tensors do not have (docs: data model)."""

HOOKING_METHODS = _words("register_hook register_prehook register_post_accumulate_grad_hook retain_grad")
"""Methods of tensors and of nodes of the graph that have something done with each gradient (docs)."""

LEAVING_WEIGHTS = _words("torch.nn.utils.weight_norm torch.nn.utils.spectral_norm")
"""Of these, those after which each forward leaves the weight that it computed, with its graph, as an attribute
(source: torch/nn/utils/weight_norm.py)."""

GRAD_MODE_QUESTIONS = _words("torch.is_grad_enabled torch.is_inference_mode_enabled torch._C.is_grad_enabled")
"""Functions that ask whether gradients are on (docs)."""

GRAD_OFF = _words(
    """
    torch.no_grad torch.inference_mode torch.autograd.no_grad torch.autograd.grad_mode.no_grad
    torch.autograd.inference_mode
    """
)
GRAD_ON = _words("torch.enable_grad torch.autograd.enable_grad torch.autograd.grad_mode.enable_grad")
GRAD_SWITCH = _words(
    """
    torch.set_grad_enabled torch.autograd.set_grad_enabled torch.autograd.grad_mode.set_grad_enabled
    torch._C._set_grad_enabled
    """
)
"""What switches recording off and on (docs: torch.autograd.grad_mode)."""

BACKWARD_FUNCTIONS = _words("torch.autograd.backward torch.autograd.variable.backward")
GRAD_FUNCTIONS = _words("torch.autograd.grad torch.autograd.functional.jacobian torch.autograd.functional.hessian")
FUNCTIONAL_GRADIENTS = (
    "torch.autograd.functional.",
    "torch.func.",
    "functorch.",
    "higher.",
    "torch.autograd.gradcheck",
)

OF_INDICES = frozenset({"Embedding", "EmbeddingBag"})
"""Modules whose first input is whole numbers, which have no graph (docs: torch.nn.Embedding)."""

BACKWARD_METHODS = _words("backward manual_backward")
"""Methods of wrappers (accelerate, DeepSpeed, Lightning, Fabric) that back-propagate their argument (docs)."""

NUMERIC_LIBRARIES = _words(
    """
    numpy math os sys time json pickle cv2 PIL scipy sklearn pandas logging argparse matplotlib pathlib glob shutil
    csv re string datetime skimage nltk h5py yaml tensorboard tensorboardX wandb visdom tqdm gym gymnasium
    subprocess warnings platform io gc seaborn imageio lmdb librosa soundfile networkx psutil gzip zipfile tarfile
    tempfile configparser hashlib uuid socket struct decimal fractions numbers signal sacred hydra omegaconf mlflow
    comet_ml neptune boto3 requests tensorflow ast ctypes
    """
)
"""Libraries whose results carry no history (they know nothing of autograd)."""

CARRYING_LIBRARIES = _words(
    """
    itertools collections functools heapq operator types dataclasses typing statistics enum abc threading
    multiprocessing queue inspect copyreg random copy weakref contextlib contextvars concurrent asyncio bisect
    """
)
"""Libraries of Python that hand on what they are given, tensors with their history, too (docs)."""

NUMBERS_OF = _words(
    """
    random.random random.uniform random.randint random.randrange random.gauss random.normalvariate random.seed
    random.getrandbits random.betavariate random.expovariate bisect.bisect bisect.bisect_left bisect.bisect_right
    statistics.mean statistics.fmean statistics.stdev statistics.pstdev statistics.variance statistics.pvariance
    itertools.count operator.index operator.length_hint operator.countOf operator.indexOf operator.truth operator.not_
    operator.is_ operator.is_not operator.contains threading.get_ident threading.active_count multiprocessing.cpu_count
    inspect.signature inspect.getsource inspect.isclass inspect.isfunction
    """
)
"""Functions among them whose results are numbers, texts or other plain data (docs)."""

NUMBERS = frozenset(
    f"{library}.{name}"
    for library, names in {
        "numpy": "nan NaN NAN inf Inf pi e",
        "math": "nan inf pi e tau",
        "torch": "nan inf pi e",
    }.items()
    for name in names.split()
)
"""Constants of libraries that are Python numbers."""

COMMAND_LINES = _words(
    """
    argparse.ArgumentParser optparse.OptionParser configargparse.ArgumentParser configargparse.ArgParser
    configargparse.Parser
    """
)
"""What reads a command line: words and numbers."""

TAUGHT_LIBRARIES = frozenset(
    path.stem for path in (Path(__file__).parents[1] / "libraries" / "taught").glob("*.py") if path.stem != "__init__"
)
"""Libraries that have a file of their own."""

TORCH_LIBRARIES = TAUGHT_LIBRARIES | _words(
    """
    allennlp botorch catalyst composer deepspeed detectron2 dgl diffusers fairseq fastai fastcore flair
    fvcore gpytorch ignite jittor kornia mmcv mmdet mmengine monai nemo norse peft poutyne pyro
    sentence_transformers skorch speechbrain spikingjelly stable_baselines3 tianshou timm transformers trl ultralytics
    xformers
    """
)
"""Libraries through which a program comes to tensors without a word of torch in it; those that have it in their name
are told by that."""

DATA_LIBRARIES = _words(
    """
    cv2 PIL h5py pandas sklearn scipy imageio argparse omegaconf hydra yaml json configparser csv re os sys string glob
    pathlib datetime time lmdb librosa soundfile networkx ast ctypes
    """
)
"""Those among them whose results are data or settings through and through, never a container of tensors."""

MODEL_LIBRARIES = _words(
    """
    torchvision.models timm.create_model pretrainedmodels segmentation_models_pytorch efficientnet_pytorch
    torch.hub.load
    """
)
"""Calls below these names return modules (their docs)."""

SOME = "?"
"""What stands for a name in a library that is only known when the program runs."""

OF_CLASSES = _words("torch.nn torch.optim torchvision.models timm.models")
"""Where every name that a program asks for when it runs is that of a layer, an optimizer or a model."""

LAYER_LIBRARIES = _words("torch_geometric.nn dgl.nn monai.networks timm.layers torchvision.ops")
"""Classes below these names are layers that keep no graph from one call to the next (their docs), but for
``REMEMBERING``."""

REMEMBERING = frozenset({"TGNMemory"})
"""Classes of ``LAYER_LIBRARIES`` that do keep what they computed (docs: torch_geometric.nn.models)."""

PRETRAINED_LIBRARIES = _words("transformers pytorch_transformers pytorch_pretrained_bert diffusers peft adapters")
"""Libraries whose classes are called by what they are: ``...Model`` and ``...For...`` are modules, which
``from_pretrained`` returns; tokenizers, processors and configurations say so (their docs)."""

LOSS_LIBRARIES = _words("torch.nn pytorch_metric_learning.losses kornia.losses monai.losses piq lightly.loss geomloss")
"""Classes below these names that are called ``...Loss`` make losses of what they are given, and take no gradient
themselves (their docs)."""

KEEPING_NOTHING = (*MODEL_LIBRARIES, *LAYER_LIBRARIES, "torch.nn.", "transformers.")
"""How the public names begin of modules that keep no graph from one call to the next."""

FRAMEWORK_BASES = {
    "pytorch_lightning.LightningModule": "lightning",
    "lightning.LightningModule": "lightning",
    "lightning.pytorch.LightningModule": "lightning",
    "torch.nn.Module": "module",
    "torch.autograd.Function": "function",
    "torch.optim.Optimizer": "optimizer",
    "torch.utils.data.Dataset": "dataset",
    "torch.utils.data.IterableDataset": "dataset",
    "torch.utils.data.DataLoader": "dataset",
}
"""What a class is by its base."""

FRAMEWORK_EVALUATION = _words(
    """
    validation_step test_step predict_step validation_epoch_end test_epoch_end on_validation_epoch_end on_test_epoch_end
    on_validation_epoch_start on_test_epoch_start validation_step_end test_step_end on_validation_batch_end
    """
)
"""Hooks that Lightning calls without gradients (docs: LightningModule)."""

LOGGING_LIBRARIES = (
    *("logging", "tensorboard", "tensorboardX", "torch.utils.tensorboard", "wandb", "visdom", "mlflow", "comet_ml"),
    *("neptune", "sacred", "csv", "matplotlib", "seaborn", "tqdm", "loguru", "rich"),
)
"""Libraries whose objects only look at what their methods are given (their docs)."""

LOOKING_LIBRARIES = ("torchvision", "torchaudio", "torch", "torchmetrics", "ignite", "pytorch_lightning", "lightning")
"""Libraries whose functions never back-propagate what they are given, but for those of ``torch.autograd`` (docs)."""

BAR_LIBRARIES = _words("tqdm rich alive_progress progressbar fastprogress")
"""Libraries whose functions put a progress bar around what is gone through (their docs)."""

PUTTING_METHODS = _words("append add put push store update extend insert appendleft")
"""Methods by which what cannot be seen is most likely given something to keep; a name only makes rules more careful."""

BAR_METHODS = _words("set_postfix set_postfix_str set_description set_description_str")
"""Methods of such a bar that print what they get (docs: tqdm)."""

CACHING = _words("functools.lru_cache functools.cache functools.cached_property")
"""Decorators that hand a former result out again (docs: functools)."""

EXIT_STACKS = _words("contextlib.ExitStack contextlib.AsyncExitStack")
"""What enters contexts one by one (docs: contextlib)."""

PARAMETRIZATION_CACHES = _words("torch.nn.utils.parametrize.cached")
"""Contexts in which all forwards share one graph from a weight to what its parametrization makes of it (docs)."""

WEIGHT_CACHES = _words(
    """
    torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast
    torch.cuda.amp.autocast_mode.autocast torch.cpu.amp.autocast_mode.autocast torch.amp.autocast_mode.autocast
    torch.nn.utils.parametrize.cached
    """
)
"""Contexts in which the first forward leaves what it makes of a weight to the others: one without gradients leaves them
no graph (pytorch/pytorch#112583, which torch 2.13 has mended for ``autocast``; ``cached``: ran on 2.13)."""


def logs(path: str) -> bool:
    """Whether a public name is of a library that only looks."""
    return path.startswith(tuple(f"{name}." for name in LOGGING_LIBRARIES))


OTHER_KERNELS = _words(
    """
    LSTM GRU MultiheadAttention TransformerEncoder TransformerEncoderLayer TransformerDecoder Transformer
    """
)
"""Modules that choose other kernels without gradients: results differ by 1e-8 to 5e-7 (ran; GRU was seen identical)."""

TURNED = _words("transpose permute swapaxes swapdims movedim moveaxis mT expand expand_as unfold")
"""Views whose memory is not in the order of their elements; ``t`` and ``T`` are of matrices, which nothing folds."""

FOLDING = _words("MatMult matmul linear")
"""Products of several matrices by one, whose kernel depends on whether that one asks for gradients (source: should_fold
in aten/src/ATen/native/LinearAlgebra.cpp)."""

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

WEIGHT_FOR_INPUT = _words(
    """
    Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyLinear LazyConv1d
    LazyConv2d LazyConv3d RNNCell LSTMCell GRUCell BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LayerNorm
    GroupNorm RMSNorm
    PReLU Sequential
    """
)
"""Modules whose backward reads their weight where their input needs a gradient (derivatives; not for plain input)."""

WEIGHT_WITHIN = _words(
    """
    RNN LSTM GRU MultiheadAttention Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer
    TransformerDecoderLayer
    """
)
"""Modules of several layers or times: their backward reads a weight also where their input is plain (ran)."""

SAVES_OTHER = _words("Mult Div MatMult mul multiply div divide matmul mm bmm mv linear conv1d conv2d conv3d einsum dot")
"""Operations of two tensors that keep each for the gradient of the other (derivatives)."""

SAVES_SELF = _words(
    "Pow pow norm abs square log log2 log10 log1p sin cos prod std var softplus gelu silu elu leaky_relu"
)
"""Operations of one tensor that keep the tensor itself, not their result (derivatives)."""

NOT_LINEAR = SAVES_SELF | _words(
    """
    clamp clamp_min clamp_max clip sign sgn renorm round floor ceil trunc nan_to_num exp sqrt rsqrt tanh sigmoid softmax
    log_softmax relu hardtanh threshold topk sort argsort argmax argmin max min amax amin median quantile normalize
    maximum minimum fmod remainder reciprocal logsumexp cumprod isnan isinf isfinite any all item
    """
)
"""Operations whose result for a sum is not the sum of their results."""

SHARING_MEMORY = _words(
    """
    view view_as reshape reshape_as transpose permute t mT T squeeze unsqueeze expand expand_as contiguous flatten
    unflatten to cpu cuda float double type type_as split chunk unbind narrow select movedim swapaxes real imag unfold
    diagonal getitem view_as_real view_as_complex parameters_to_vector tensor_split ravel setitem as_tensor asarray
    Tensor FloatTensor DoubleTensor HalfTensor new
    """
)
"""Operations whose result may share memory with its input, and so follows what is written to that (docs)."""

REPEATABLE_MODULES = (
    MODULES_WITHOUT_PARAMETERS
    | LOSS_MODULES
    | _words("Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d Embedding LayerNorm GroupNorm")
) - _words("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout FractionalMaxPool2d")
"""Modules that draw no random numbers and keep no statistics: running them once more changes nothing else (docs)."""

RANDOM_CALLS = RANDOM_FACTORIES | _words(
    """
    dropout dropout_ alpha_dropout rsample sample normal_ uniform_ bernoulli_ random_ exponential_ random shuffle choice
    gumbel_softmax rrelu feature_dropout manual_seed seed
    """
)
"""Functions and methods that draw random numbers (docs)."""

LOOKING_CALLS = _words(
    """
    item detach cpu numpy tolist append float format extend set_description set_postfix keys size dim int str len print
    round
    """
)
"""Builtins, and methods of tensors, containers and progress bars, that only look at values which are there."""

DATA_CALLS = _words(
    """
    next to cuda randn rand randint zeros ones full tensor empty zeros_like ones_like randn_like normal_ uniform_ fill_
    requires_grad_ view reshape long type
    """
)
"""Functions and methods that make data, perhaps random, and touch no parameters."""

COLLECTIVES = _words(
    """
    all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single broadcast irecv recv reduce reduce_scatter
    reduce_scatter_tensor scatter
    """
)
"""Functions of ``torch.distributed`` that write to the tensors they are given first (docs: torch.distributed)."""

PASSING_DECORATORS = frozenset(
    [
        "abc",
        "builtins",
        "click",
        "contextlib",
        "dataclasses",
        "enum",
        "functools",
        "hydra",
        "lightning",
        "numba",
        "overrides",
        "pytest",
        "pytorch_lightning",
        "torch",
        "types",
        "typing",
        "typing_extensions",
    ]
)
"""Packages whose decorators keep nothing of what a function returns, or say so (``lru_cache`` is known by itself)."""
