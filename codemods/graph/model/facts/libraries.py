"""Libraries other than torch: what they make of their arguments."""

from __future__ import annotations

from pathlib import Path

from codemods.terms.words import words

KEEPING_TENSORS = words(
    """
    math.prod math.sumprod numpy.array_split numpy.diff numpy.hsplit numpy.real numpy.rollaxis numpy.split
    numpy.squeeze numpy.swapaxes numpy.vsplit
    """
)
"""Functions of numeric libraries that give a tensor with its graph: they multiply, slice, or call its own method."""

NUMERIC_LIBRARIES = words(
    """
    numpy math os sys time json pickle cv2 PIL scipy sklearn pandas logging argparse matplotlib pathlib glob shutil
    csv re string datetime skimage nltk h5py yaml tensorboard tensorboardX wandb visdom tqdm gym gymnasium
    subprocess warnings platform io gc seaborn imageio lmdb librosa soundfile networkx psutil gzip zipfile tarfile
    tempfile configparser hashlib uuid socket struct decimal fractions numbers signal sacred hydra omegaconf mlflow
    comet_ml neptune boto3 requests tensorflow ast ctypes
    """
)
"""Libraries whose results carry no history (they know nothing of autograd)."""

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

TAUGHT_LIBRARIES = frozenset(
    path.stem for path in (Path(__file__).parents[2] / "libraries" / "taught").glob("*.py") if path.stem != "__init__"
)
"""Libraries that have a file of their own."""

TORCH_LIBRARIES = TAUGHT_LIBRARIES | words(
    """
    allennlp botorch catalyst composer deepspeed detectron2 dgl diffusers fairseq fastai fastcore flair
    fvcore gpytorch ignite jittor kornia mmcv mmdet mmengine monai nemo norse peft poutyne pyro
    sentence_transformers skorch speechbrain spikingjelly stable_baselines3 tianshou timm transformers trl ultralytics
    xformers
    """
)
"""Libraries through which a program comes to tensors without a word of torch in it; those that have it in their name
are told by that."""

DATA_LIBRARIES = words(
    """
    cv2 PIL h5py pandas sklearn scipy imageio argparse omegaconf hydra yaml json configparser csv re os sys string glob
    pathlib datetime time lmdb librosa soundfile networkx ast ctypes
    """
)
"""Those among them whose results are data or settings through and through, never a container of tensors."""

ARRAY_ESTIMATORS = tuple(
    f"sklearn.{module}."
    for module in (
        *("cluster", "covariance", "cross_decomposition", "decomposition", "discriminant_analysis", "gaussian_process"),
        *("isotonic", "kernel_ridge", "linear_model", "manifold", "mixture", "naive_bayes", "neighbors"),
        *("neural_network", "preprocessing", "random_projection", "svm", "tree"),
    )
)
"""How the public names begin of estimators whose methods make arrays of what they get, or raise (docs: scikit-learn,
check_array); those that call other estimators stand in other modules."""

NO_ARRAY_ESTIMATORS = frozenset({"sklearn.preprocessing.FunctionTransformer"})
"""Those among them that hand on what they get as it is."""

MODEL_LIBRARIES = words(
    """
    torchvision.models timm.create_model timm.models.create_model pretrainedmodels segmentation_models_pytorch
    efficientnet_pytorch torch.hub.load torchaudio.models geffnet.create_model open_clip.create_model
    pytorchcv.model_provider.get_model resnest.torch facenet_pytorch.InceptionResnetV1 vit_pytorch.ViT lpips.LPIPS
    torchcrf.CRF
    """
)
"""Calls below these names return modules (their docs)."""

SOME = "?"
"""What stands for a name in a library that is only known when the program runs."""

OF_CLASSES = words("torch.nn torch.optim torchvision.models timm.models")
"""Where every name that a program asks for when it runs is that of a layer, an optimizer or a model."""

RUN_BY_PARTS = ("torchvision.models", "timm.create_model", "pretrainedmodels")
"""Those among them whose methods run layers and nothing else where they are given a tensor: ``net.layer1(x)``,
``net.forward_features(x)``, ``net.logits(x)`` (their sources)."""

LAYER_LIBRARIES = words(
    "torch_geometric.nn dgl.nn monai.networks timm.layers timm.models.layers torchvision.ops einops.layers.torch"
)
"""Classes below these names are layers that keep no graph from one call to the next (their docs), but for
``REMEMBERING``."""

REMEMBERING = frozenset({"TGNMemory"})
"""Classes of ``LAYER_LIBRARIES`` that do keep what they computed (docs: torch_geometric.nn.models)."""

PRETRAINED_LIBRARIES = words("transformers pytorch_transformers pytorch_pretrained_bert diffusers peft adapters")
"""Libraries whose classes are called by what they are: ``...Model`` and ``...For...`` are modules, which
``from_pretrained`` returns; tokenizers, processors and configurations say so (their docs)."""

LOSS_LIBRARIES = words("torch.nn pytorch_metric_learning.losses kornia.losses monai.losses piq lightly.loss geomloss")
"""Classes below these names that are called ``...Loss`` make losses of what they are given, and take no gradient
themselves (their docs)."""

KEEPING_NOTHING = (
    *(*MODEL_LIBRARIES, *LAYER_LIBRARIES, "torch.nn.", "transformers."),
    *("pytorch_transformers.", "pytorch_pretrained_bert."),
)
"""How the public names begin of modules that keep no graph from one call to the next."""

_WITHOUT_GRAD = (("transformers.", "generate"), ("sentence_transformers.", "encode"), ("whisper.", "transcribe"))
"""Methods of models that switch gradients off themselves: how their public names begin and end (their sources)."""


def runs_without_grad(path: str) -> bool:
    """Whether a method with this public name records no graph."""
    return any(path.startswith(begin) and path.endswith(f".{method}") for begin, method in _WITHOUT_GRAD)


SCHEDULERS = ("torch.optim.lr_scheduler.", "torch.optim.SWALR")
"""How the public names of classes begin that set the learning rates of an optimizer. They read and write nothing else
of it, call their own ``get_lr``, and compare what ``step`` gets with what it got before (docs: torch.optim)."""

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

FRAMEWORK_EVALUATION = words(
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

BAR_LIBRARIES = words("tqdm rich alive_progress progressbar fastprogress")
"""Libraries whose functions put a progress bar around what is gone through (their docs)."""

BAR_METHODS = words("set_postfix set_postfix_str set_description set_description_str")
"""Methods of such a bar that print what they get (docs: tqdm)."""


def is_logging(path: str) -> bool:
    """Whether a public name is of a library that only looks."""
    return path.startswith(tuple(f"{name}." for name in LOGGING_LIBRARIES))


SELDOM_CALLED = words(
    """
    __init__ setup teardown configure_model configure_optimizers on_fit_start on_fit_end on_train_start on_train_end
    on_train_epoch_start on_train_epoch_end training_epoch_end validation_step test_step predict_step
    on_validation_start on_validation_end on_validation_epoch_start on_validation_epoch_end validation_epoch_end
    on_test_start on_test_end on_test_epoch_start on_test_epoch_end test_epoch_end on_validation_batch_end
    """
)
"""Hooks that Lightning does not call for each batch of training (docs: LightningModule)."""
