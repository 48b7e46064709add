"""Losses that lie in a dict or list when they are kept elsewhere: who walks them by that, and who by their keeper."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, analysed, mended

PROGRAM = """
{before}
for i, (x, y) in enumerate(batches()):
    {made}
    {kept}
    opt.zero_grad()
    {walked}
    opt.step()
{read}
"""
WAYS = {
    "losses = {{'main': {loss}, 'other': net(x).mean()}}": "losses['main']",
    "losses = {{}}; losses['other'] = 1.0; losses['main'] = {loss}": "losses['main']",
    "losses = dict(main={loss})": "losses['main']",
    "losses = [{loss}, net(x).mean()]": "losses[0]",
    "box.losses = {{'main': {loss}}}": "box.losses['main']",
    "older['main'] = {loss}": "older['main']",
    "losses = ({loss}, net(x).mean())": "losses[0]",
}
HEAD = LEARNING + "\nclass Box:\n    pass\n\nbox = Box()\nolder = {}\nseen = []\nlog = {}\n"
RULES = ("attached-loss-history", "attached-loss-total")


def findings(folder: Path, **parts: str) -> list[Promise]:
    parts = {"before": "", "read": "print([v.item() for v in seen], log)", **parts}
    return [f.promise for f in analysed(folder, Options(select=RULES), HEAD, PROGRAM.format(**parts))]


@pytest.mark.parametrize(("made", "read"), WAYS.items())
@pytest.mark.parametrize("kept", ["seen.append({0})", "log[i] = {0}", "log[f'step {{i}}'] = {0}", "seen += [{0}]"])
@pytest.mark.parametrize("walked", ["{0}.backward()", "loss = {0}; loss.backward()", "({0} * 2).backward()"])
def test_what_a_dict_had_before_is_walked_by_the_dict(
    tmp_path: Path, made: str, read: str, kept: str, walked: str
) -> None:
    found = findings(
        tmp_path, made=made.format(loss="criterion(net(x), y)"), kept=kept.format(read), walked=walked.format(read)
    )
    assert found == [Promise.EXACT]


@pytest.mark.parametrize(
    ("kept", "walked"),
    [
        # the container that keeps it, under another name
        ("alias = log; log[i] = losses['main']", "alias[i].backward()"),
        ("seen.append(losses['main'])", "seen[-1].backward()"),
        ("seen.append(losses['main'])", "last = seen[-1]; last.backward()"),
        ("seen.append(losses['main'])", "for one in seen[-1:]: one.backward()"),
        # a container that got it from its keeper
        ("seen.append(losses['main'])", "losses = {'main': seen[-1]}; losses['main'].backward()"),
        ("seen.append(losses['main'])", "losses['main'] = seen[-1]; losses['main'].backward()"),
        ("seen.append(losses['main'])", "losses.update(main=seen[-1]); losses['main'].backward()"),
        ("log['main'] = losses['main']", "losses.update(log); losses['main'].backward()"),
        ("seen.append(losses['main'])", "box.last = list(seen); box.last[-1].backward()"),
        # containers within the keeper
        ("seen.append(losses)", "seen[-1]['main'].backward()"),
        ("seen.append({'main': losses['main']})", "seen[-1]['main'].backward()"),
        ("part = {}; part['main'] = losses['main']; seen.append(part)", "seen[-1]['main'].backward()"),
        ("part = {}; part['main'] = losses['main']; seen.append(part)", "last = seen[-1]; last['main'].backward()"),
        ("seen.append(losses['main'])", "pair = (seen[-1], 1); pair[0].backward()"),
        ("pair = (losses['main'], 1); seen.append(pair)", "pair = seen[-1]; pair[0].backward()"),
        # earlier steps are walked with this one
        ("seen.append(losses['main'])", "(losses['main'] + sum(seen)).backward(retain_graph=True)"),
        ("log[i] = losses['main']", "(losses['main'] + log[0]).backward(retain_graph=True)"),
    ],
)
def test_what_comes_from_its_keeper_needs_the_graph_there(tmp_path: Path, kept: str, walked: str) -> None:
    assert findings(tmp_path, made="losses = {'main': criterion(net(x), y)}", kept=kept, walked=walked) == []


@pytest.mark.parametrize(
    "kept",
    [
        "for name in losses: older[name] = losses[name]",
        "for name in losses.keys(): older[name] = losses[name]",
        "for name, value in losses.items(): older[name] = value",
        "for name in ('main', 'other'): older[name] = losses[name]",
    ],
)
def test_what_is_replaced_in_each_step_does_not_pile_up(tmp_path: Path, kept: str) -> None:
    made = "losses = {'main': criterion(net(x), y), 'other': net(x).mean()}"
    assert findings(tmp_path, made=made, kept=kept, walked="losses['main'].backward()", read="print(older)") == []


@pytest.mark.parametrize("key", ["name + str(i)", "(name, i)", "i", "f'{name} {i}'", "name, x.size(0)"])
def test_under_other_names_it_does(tmp_path: Path, key: str) -> None:
    made = "losses = {'main': criterion(net(x), y), 'other': net(x).mean()}"
    kept = f"for name in losses: older[{key}] = losses[name]"
    found = findings(tmp_path, made=made, kept=kept, walked="losses['main'].backward()", read="print(older)")
    assert found == [Promise.EXACT]


def test_a_name_for_each_run_of_training_is_not_replaced(tmp_path: Path) -> None:
    program = (
        "results = {}\nfor name in ('one', 'two'):\n    for x, y in batches():\n        loss = criterion(net(x), y)\n"
        "        learn(loss)\n    results[name] = loss\nprint({k: v.item() for k, v in results.items()})\n"
    )
    assert [f.promise for f in analysed(tmp_path, Options(select=RULES), HEAD, program)] == [Promise.EXACT]


READ_BEHIND = """
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    seen.append(loss)
    {read}
    learn(loss)
print(seen)
"""


@pytest.mark.parametrize(
    ("read", "kept"),
    [
        # read by the name that had it before
        ("if loss: print('some')", "loss.item()"),
        ("while loss: break", "loss.item()"),
        ("assert loss", "loss.item()"),
        ("match loss:\n        case 0: print('none')", "loss.item()"),
        # read through the list: what stands below the condition says nothing of who reads it
        ("if seen[-1]: print(loss)", "loss.detach()"),
        ("assert seen[-1], loss", "loss.detach()"),
        ("for part in seen[-1].view(1): print(loss)", "loss.detach()"),
        ("match seen[-1]:\n        case torch.Tensor(): print(loss)", "loss.detach()"),
    ],
)
def test_what_a_condition_reads_is_its_own(tmp_path: Path, read: str, kept: str) -> None:
    program = READ_BEHIND.format(read=read)
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert f"seen.append({kept})" in mended(tmp_path, found)
