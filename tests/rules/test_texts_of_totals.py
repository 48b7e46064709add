"""The text that ``str`` makes of a total tells of its graph: code that looks into it gets another one of a number."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, found

RULE = "attached-loss-total"

PROGRAM = (
    LEARNING
    + """
import re

{before}
total = 0
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    total += loss
{after}
"""
)

LOOKED_INTO = {
    "a variable": "text = str(total)\nif 'grad_fn' in text: print('attached')",
    "a length": "text = repr(total)\nwidth = len(text)",
    "a part": "text = str(total)\nvalue = float(text[7:13])",
    "parts": "text = '%s' % total\nvalue = text.split('(')[1]",
    "a comparison": "text = str(total)\nsame = text == str(total.detach())",
    "letters": "for letter in str(total): print(letter)",
    "a pattern": "text = str(total)\nvalue = re.search('[0-9.]+', text).group()",
    "an attribute": "net.text = str(total)\nif net.text.startswith('tensor'): print(1)",
    "a list": "lines = []\nlines.append(str(total))\nfor line in lines:\n    if 'tensor' in line: print(line)",
    "a longer text": "text = 'loss ' + str(total)\nif 'tensor' in text: print(1)",
    "a text that grows": "text = ''\ntext += str(total)\nif 'tensor' in text: print(1)",
    "a joined text": "text = ', '.join(str(t) for t in [total])\nif 'tensor' in text: print(1)",
    "mapped texts": "text = ' '.join(map(str, [total]))\nif 'tensor' in text: print(1)",
    "the text of a list": "text = f'{[total]}'\nif 'tensor' in text: print(1)",
    "by conversion": "text = f'{total!r}'\nif 'tensor' in text: print(1)",
    "its own method": "text = total.__repr__()\nif 'tensor' in text: print(1)",
    "the method of texts": "text = 'loss {}'.format([total])\nif 'tensor' in text: print(1)",
    "laid out before": "text = str(total).ljust(40)\nif 'tensor' in text: print(1)",
}

FUNCTIONS = {
    "an argument": ("def look(text):\n    return 'grad_fn' in text", "look(str(total))"),
    "a result": ("def tell(value):\n    return str(value)", "if 'grad_fn' in tell(total): print(1)"),
    "a lambda": ("tell = lambda value: str(value)", "if 'grad_fn' in tell(total): print(1)"),
    "a generator": ("def lines(value):\n    yield str(value)", "if 'grad_fn' in next(lines(total)): print(1)"),
}

READ_BY_PEOPLE = {
    "printed": "text = str(total)\nprint(text)",
    "put together": "text = 'loss ' + str(total) + ' at the end'\nprint(text)",
    "joined": "lines = ['loss', str(total)]\nprint('\\n'.join(lines))",
    "laid out": "print(str(total).ljust(20) + '|')",
    "written": "with open('log.txt', 'w') as log:\n    log.write(str(total))",
    "logged": "import logging\nlogging.info('loss %s', str(total))",
    "a number's text": "text = f'{total:.3f}'\nprint(len(text))",
    "another text": "text = str(total)\nprint(text)\nother = 'a'\nif 'grad_fn' in other: print(1)",
    "of the number": "text = str(total.item())\nif '.' in text: print(1)",
    "of something else": "text = str(len(total.shape))\nif '1' in text: print(1)\nprint(total)",
}


def promises(tmp_path: Path, before: str, after: str) -> list[Promise | None]:
    return [f.promise for f in found(tmp_path, RULE, PROGRAM.format(before=before, after=after))]


@pytest.mark.parametrize("name", LOOKED_INTO)
def test_a_text_that_is_looked_into_needs_the_tensor(tmp_path: Path, name: str) -> None:
    assert Promise.EXACT not in promises(tmp_path, "", LOOKED_INTO[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_looks_into_it(tmp_path: Path, name: str) -> None:
    assert Promise.EXACT not in promises(tmp_path, *FUNCTIONS[name])


@pytest.mark.parametrize("name", READ_BY_PEOPLE)
def test_a_text_for_people_does_not(tmp_path: Path, name: str) -> None:
    assert promises(tmp_path, "", READ_BY_PEOPLE[name]) == [Promise.EXACT]
