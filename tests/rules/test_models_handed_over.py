"""Code that cannot be seen may take gradients of a model that it gets, as attacks and measures of sharpness do."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.test_grad_in_evaluation_unseen import RULE, START, TRAIN
from tests.rules.tools import found

SCORE = """
def score():
    net.eval()
    total = 0
    for x, y in batches:
        total += F.mse_loss(net(x), y).item()
        {inside}
    print(total)
"""

ATTACK = "import attacks\nattack = attacks.Attack"
USED = "print(net(attack(x, y)).argmax(1))"
PERTURBED = "print(net(attack.perturb(x, y)).argmax(1))"
DERIVED = """
import attacks

class Mine(attacks.Base):
    def __init__(self, model):
        super().__init__({given})
        {rest}

attack = Mine(net)
"""
WRAPPED = """
import attacks

class Attacked:
    def __init__(self, model):
        self.module = model
        self.attack = attacks.Attack(model)

class Owner:
    def __init__(self):
        self.attack = Attacked(net)

attacked = Attacked(net)
print(Owner().attack.module)
"""


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("import attacks", "print(net(attacks.Attack(net)(x, y)).argmax(1))"),
        ("import attacks", "attack = attacks.Attack(net); " + USED),
        (ATTACK + "(net)", USED),
        (ATTACK + "(net)", PERTURBED),
        (ATTACK + "(model=net)", USED),
        (ATTACK + "(model=net)", PERTURBED),
        (ATTACK + "(estimator=attacks.Classifier(model=net))", "print(net(attack.generate(x=x)).argmax(1))"),
        (ATTACK + "(net)\nattack.to('cpu')", USED),
        (ATTACK + "()\nattack.model = net", USED),
        (ATTACK + "()\nattack.set_model(net)", USED),
        (ATTACK + "(net.forward)", USED),
        (ATTACK + "(lambda images: net(images))", USED),
        ("import attacks\nmade = attacks.Attack(net)\nattack = attacks.PGD()", "print(attack(made, x))"),
        ("import attacks\nmade = attacks.Attack(model=net)\nattack = attacks.PGD()", "print(attack(made, x))"),
        ("import attacks\nfrom functools import partial\nattack = partial(attacks.pgd, net)", USED),
        # in containers
        ("import attacks", "print(attacks.sharpness([net], x, y))"),
        ("import attacks", "print(attacks.sharpness((x, net), y))"),
        ("import attacks", "print(attacks.sharpness({'model': net}, x, y))"),
        ("import attacks", "print(attacks.sharpness(given=[dict(model=net)], x=x))"),
        ("import attacks\nattack = attacks.make([net])", "print(attack(x))"),
        ("import attacks\nattack = attacks.make([net])", "print(attack.run(x))"),
        ("import attacks\nby_name = {'first': attacks.Attack(net)}", "print(by_name['first'](x))"),
        (
            "import attacks\nall_of_them = [made(net) for made in (attacks.A, attacks.B)]",
            "print([a(x) for a in all_of_them])",
        ),
        ("import attacks", "for attack in attacks.of(model=net): print(attack(x))"),
        # in objects
        ("import attacks\nclass Made: pass\nmade = Made()\nmade.attack = attacks.Attack(net)", "print(made.attack(x))"),
        ("import attacks\nclass Made: pass\nmade = Made()\nmade.model = net", "print(attacks.sharpness(made, x))"),
        (DERIVED.format(given="model", rest="pass"), USED),
        (DERIVED.format(given="model", rest="pass"), PERTURBED),
        (DERIVED.format(given="", rest="self.model = model"), PERTURBED),
        # other things of that name are modules, and others have such an attribute
        (WRAPPED, "print(net(attacked.attack(x, y)).argmax(1))"),
        (ATTACK + "(net)\nclass Other:\n    attack = nn.Linear(4, 4)\nOther.attack.train()", USED),
        ("import attacks", "print(attacks.sharpness(net, x, y))"),
        ("import importlib\nmetrics = importlib.import_module('metrics')", "total += metrics.score(net, x, y)"),
        ("import attacks", "print(attacks.sharpness(model=net))"),
    ],
)
def test_unseen_code_that_gets_the_model_may_take_gradients(tmp_path: Path, before: str, inside: str) -> None:
    code = SCORE.format(inside=inside)
    findings = found(tmp_path, RULE, START, before, TRAIN, code, "learn()\nscore()\n")
    assert findings
    assert {finding.promise for finding in findings} == {Promise.ADVICE}
    assert all(finding.likely is Promise.EXACT for finding in findings)
    assert all("the model goes to code" in finding.message for finding in findings)


def test_what_an_imported_file_made_of_the_model(tmp_path: Path) -> None:
    files = {"models": START, "attacked": "import attacks\nfrom models import net\nattack = attacks.Attack(net)\n"}
    code = SCORE.format(inside=USED)
    findings = found(
        tmp_path, RULE, "from models import *\nfrom attacked import attack", TRAIN, code, "score()", **files
    )
    assert [finding.likely for finding in findings] == [Promise.EXACT]


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        # what is made of the model is used as a model
        ("import fancy\nnet = fancy.Parallel(net)", "pass"),
        ("import fancy\nmodel = fancy.Parallel(net)\nmodel.train()", "print(model(x).argmax(1))"),
        ("import fancy\nmodel = fancy.Parallel(module=net)\nmodel.eval()", "print(model(x).argmax(1))"),
        ("import fancy\nmodel = fancy.Parallel(net)\nprint(list(model.parameters()))", "print(model(x).argmax(1))"),
        ("import sys\nimport fancy\nif sys.argv[1:]:\n    net = fancy.Parallel(net)", "pass"),
        ("model = nn.DataParallel(net)", "print(model(x).argmax(1))"),
        # it gets no model, or not here
        ("import fancy", "print(fancy.metric(net(x).argmax(1)))"),
        ("import fancy", "print(fancy.metric([x, y], by={'a': x}))"),
        ("import fancy\nloss = nn.MSELoss()", "print(fancy.named(loss))"),
        ("import fancy\nlosses = [nn.MSELoss()]", "print(fancy.named(losses))"),
        ("import fancy\nfancy.summary(net)", "pass"),
        ("import fancy\nfancy.summary([net])", "print(fancy.metric(x))"),
        ("import fancy\nattack = fancy.Attack(net)", "pass"),
        ("import fancy\nmeter = fancy.Meter()\nattack = fancy.Attack(net)", "meter.update(net(x).argmax(1))"),
        # functions of torch that take no gradients
        ("", "torch.save(net, 'net.pt')"),
        ("", "torch.save({'net': net.state_dict(), 'whole': net}, 'net.pt')"),
    ],
)
def test_what_gets_no_model_changes_nothing(tmp_path: Path, before: str, inside: str) -> None:
    code = SCORE.format(inside=inside)
    findings = found(tmp_path, RULE, START, before, TRAIN, code, "learn()\nscore()\n")
    assert [finding.promise for finding in findings] == [Promise.EXACT]
