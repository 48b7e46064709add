"""What is kept of a loss is changed with it, by whatever name; its text and all variables may be looked into."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.source.options import Options
from tests.rules.tools import LEARNING as HEAD
from tests.rules.tools import analysed, mended

RULES = ("attached-loss-total", "attached-loss-history")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("pass", "loss.item()"),
        ("loss = loss * 2", "loss.item()"),
        ("loss.clone().mul_(2)", "loss.item()"),
        ("with torch.no_grad():\n    x.mul_(2)", "loss.item()"),
        ("with torch.no_grad():\n    loss.mul_(2)", "loss.detach()"),
        ("with torch.no_grad():\n    loss += 1", "loss.detach()"),
        ("other = loss\nwith torch.no_grad():\n    other.mul_(2)", "loss.detach()"),
        ("loss.data.mul_(2)", "loss.detach()"),
        ("loss.data[()] = 2", "loss.detach()"),
        ("loss.detach().view(1)[0] = 2", "loss.detach()"),
        ("with torch.no_grad():\n    torch.mul(loss, 3, out=loss)", "loss.detach()"),
        ("with torch.no_grad():\n    torch._foreach_mul_([loss], 3)", "loss.detach()"),
        # other memory: what is kept would not have it
        ("loss.data = torch.tensor(5.0)", "(loss)"),
    ],
)
def test_what_is_changed_in_place_changes_in_the_list(tmp_path: Path, change: str, expected: str) -> None:
    program = f"""
seen = []
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    seen.append(loss)
{indent(change, "    ")}
print(sum(seen))
"""
    assert f"seen.append({expected.strip('()') if expected == '(loss)' else expected})" in mended(
        tmp_path, analysed(tmp_path, Options(select=RULES), HEAD, program)
    )


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("print(f'{total:.3f}', str(total), '%s' % total)", "loss.item()"),
        ("print('total: {}'.format(total) if x is not None else '')", "loss.item()"),
        ("text = f'{total}'.rjust(20)\n    print(text)", "loss.item()"),
        ("rate = 1 if 'grad_fn' in str(total) else 2", "loss"),
        ("rate = len(f'{total}') / 100", "loss"),
        ("rate = float('%s' % total)", "loss"),
        ("print(str(total)[:5])", "loss"),
        ("print(locals()['total'].item())", "loss.detach()"),
        ("print(vars()['total'].item())", "loss.detach()"),
    ],
)
def test_a_text_that_is_looked_into_stays_as_it_is(tmp_path: Path, read: str, expected: str) -> None:
    program = f"""
def fit():
    total = 0
    for x, y in batches():
        loss = criterion(net(x), y)
        learn(loss)
        total += loss
    {read}

fit()
"""
    result = mended(tmp_path, analysed(tmp_path, Options(select=RULES), HEAD, program))
    assert f"        total += {expected}\n" in result
