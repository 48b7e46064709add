"""Layers and methods of public models (``resnet.layer1(x)``): what they compute is recorded as a whole model's is."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

HEAD = """
import torch
import torchvision
import timm
import pretrainedmodels
import mylib
from torch.autograd import Variable

opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
batches = [torch.randn(1, 3, 32, 32) for _ in range(3)]
"""

PARTS = (
    ("torchvision.models.resnet18()", "net.layer1(net.conv1(x))"),
    ("torchvision.models.vgg16(pretrained=True)", "net.features(x)"),
    ("torchvision.models.__dict__[name]()", "net.avgpool(net.layer4(x))"),
    ("timm.create_model(name)", "net.forward_features(x)"),
    ("pretrainedmodels.__dict__[name]()", "net.logits(net.features(x))"),
)
EVALUATION = """
name = str(input())
net = {net}
net.eval()
for x in batches:
    print({call}.argmax(1))
"""


@pytest.mark.parametrize(("net", "call"), PARTS)
def test_evaluation_by_the_parts_of_a_public_model_is_found(tmp_path: Path, net: str, call: str) -> None:
    findings = found(tmp_path, "grad-in-evaluation", HEAD, EVALUATION.format(net=net, call=call))
    assert [f.promise for f in findings] == [Promise.EXACT]


@pytest.mark.parametrize(
    "call",
    [
        # nobody knows what it does
        "mylib.make().layer1(x)",
        # takes no tensor: it may change the model
        "net.reset_classifier(10)",
        "net.set_grad_checkpointing(True)",
        # what it computes learns
        "net.layer1(x).mean().backward()",
    ],
)
def test_other_calls_are_no_evaluation(tmp_path: Path, call: str) -> None:
    code = EVALUATION.format(net="timm.create_model(name)", call="torch.zeros(1, 2)") + f"    {call}\n"
    assert found(tmp_path, "grad-in-evaluation", HEAD, code) == []


def test_a_part_that_training_walks_is_left_alone(tmp_path: Path) -> None:
    code = """
        net = torchvision.models.resnet18()
        for x in batches:
            features = net.layer1(net.conv1(x))
            opt.zero_grad()
            features.mean().backward()
            opt.step()
        """
    assert found(tmp_path, "grad-in-evaluation", HEAD, code) == []


VOLATILE = """
def look(net):
    for x in batches:
        print(net.{part}(Variable(x, volatile=True)).size())

look({net})
"""


def test_a_volatile_input_of_a_part_goes_with_the_evaluation(tmp_path: Path) -> None:
    code = VOLATILE.format(part="layer1", net="torchvision.models.resnet18()")
    findings = found(tmp_path, "grad-in-evaluation", HEAD, code)
    assert [f.promise for f in findings] == [Promise.EXACT]


def test_a_volatile_input_stays_where_a_method_that_cannot_be_seen_may_record(tmp_path: Path) -> None:
    code = VOLATILE.format(part="encode", net="torch.hub.load('owner/name', 'net')")
    assert [f.promise for f in found(tmp_path, "legacy-variable", HEAD, code)] == [Promise.ADVICE]


LAYERS = """
class Features(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = {model}

    def forward(self, x):
        found = {{}}
        for name, layer in {turns}:
            x = layer(x)
            found[name] = x
        return found


features = Features()
net = torch.nn.Conv2d(3, 3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for x in batches:
    opt.zero_grad()
    out = net(x)
    loss = features(out)["1"].mean()
    (loss + out.mean()).backward()
    opt.step()
    total += loss
print(total)
"""
TURNS = (
    "self.layers._modules.items()",
    "self.layers.named_children()",
    "zip('01', self.layers)",
    "zip('01', self.layers._modules.values())",
    "zip('01', self.layers[:2])",
)


@pytest.mark.parametrize("turns", TURNS)
def test_layers_of_a_public_model_one_by_one_keep_the_graph(tmp_path: Path, turns: str) -> None:
    code = LAYERS.format(turns=turns, model="torchvision.models.vgg16().features")
    (finding,) = found(tmp_path, "attached-loss-total", HEAD, code)
    assert finding.promise is Promise.EXACT


@pytest.mark.parametrize("turns", TURNS)
def test_what_is_no_model_may_cut_it(tmp_path: Path, turns: str) -> None:
    code = LAYERS.format(turns=turns, model="mylib.layers()")
    assert found(tmp_path, "attached-loss-total", HEAD, code) == []


FLAGGED = """
import {module}

net = {made}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in batches:
    loss = torch.nn.functional.mse_loss(net(x), torch.zeros(1, 2))
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        ("timm.models.create_model('resnet18')", False),
        ("torchaudio.models.Wav2Letter()", False),
        ("geffnet.create_model('efficientnet_b0')", False),
        ("open_clip.create_model('ViT-B-32')", False),
        ("pytorchcv.model_provider.get_model('resnet18')", False),
        ("facenet_pytorch.InceptionResnetV1()", False),
        ("vit_pytorch.ViT(image_size=32)", False),
        ("pytorch_transformers.BertModel.from_pretrained('bert')", False),
        ("pytorch_pretrained_bert.BertForSequenceClassification.from_pretrained('bert')", False),
        # what it found last stays on it
        ("vit_pytorch.extractor.Extractor(base)", True),
        ("mylib.models.create_model('resnet18')", True),
    ],
)
def test_a_public_model_keeps_no_graph(tmp_path: Path, made: str, kept: bool) -> None:
    code = FLAGGED.format(module=made.partition(".")[0], made=made)
    findings = found(tmp_path, "surplus-retain-graph", HEAD, code)
    assert [f.promise for f in findings] == [Promise.ADVICE if kept else Promise.EXACT]


COMPARED = """
look = {look}
net = torch.nn.Conv2d(3, 3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
{frozen}
for x in batches:
    loss = (look(net(x)) - look(x).detach()).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    {after}
    opt.step()
"""
EACH = "for p in look.parameters(): p.requires_grad = False"
LOOKS = (
    "torchvision.models.vgg16(pretrained=True)",
    "torchvision.models.vgg16().features",
    "torch.nn.Sequential(*torchvision.models.vgg16().features[:5])",
    "torch.nn.Sequential(*list(torchvision.models.vgg16().features)[:5])",
)


@pytest.mark.parametrize("frozen", [EACH, "look.requires_grad_(False)", "look.eval().requires_grad_(False)"])
@pytest.mark.parametrize("look", LOOKS)
def test_a_frozen_public_model_keeps_no_graph_either(tmp_path: Path, look: str, frozen: str) -> None:
    findings = found(tmp_path, "surplus-retain-graph", HEAD, COMPARED.format(look=look, frozen=frozen, after="pass"))
    assert [f.promise for f in findings] == [Promise.EXACT]


@pytest.mark.parametrize(
    ("look", "frozen", "after"),
    [
        # nobody knows what it keeps
        ("mylib.make()", EACH, "pass"),
        ("mylib.wrapped(torchvision.models.vgg16())", EACH, "pass"),
        ("torch.nn.Sequential(*mylib.make().features[:5])", EACH, "pass"),
        ("torch.load(input(), weights_only=False)", EACH, "pass"),
        # a hook keeps it
        (LOOKS[0], EACH + "\nkept = []\nlook.register_forward_hook(lambda m, i, o: kept.append(o))", "pass"),
        # it is walked again
        (LOOKS[0], EACH, "loss.backward()"),
        (LOOKS[2], EACH, "(loss * 2).backward()"),
        (LOOKS[1], EACH, "torch.autograd.grad(loss, list(net.parameters()))"),
    ],
)
def test_a_frozen_model_that_may_keep_a_graph_is_left(tmp_path: Path, look: str, frozen: str, after: str) -> None:
    findings = found(tmp_path, "surplus-retain-graph", HEAD, COMPARED.format(look=look, frozen=frozen, after=after))
    assert Promise.EXACT not in [f.promise for f in findings]
