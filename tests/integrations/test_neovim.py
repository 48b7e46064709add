"""The settings for Neovim that docs/editor.md shows, in Neovim."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NVIM = shutil.which("nvim")

SCRIPT = """\
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
total = 0
for x, y in [(torch.randn(2, 3), torch.randn(2, 1))] * 4:
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    total += loss
print(total / 4)
"""

# What a person does: wait for the diagnostics, choose "fix all", save.
DRIVER = """
vim.cmd('edit train.py')
local told = vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 100)
local codes = {}
for _, one in ipairs(vim.diagnostic.get(0)) do table.insert(codes, one.code or one.user_data.lsp.code) end
table.sort(codes)
vim.fn.writefile({vim.json.encode(codes)}, 'codes.json')
local client = vim.tbl_values(vim.lsp.buf_get_clients(0))[1]
local asked = vim.lsp.util.make_range_params()
asked.context = { diagnostics = {}, only = { 'source.fixAll.codemod' } }
local action = client.request_sync('textDocument/codeAction', asked, 60000, 0).result[1]
if not action.edit then action = client.request_sync('codeAction/resolve', action, 60000, 0).result end
vim.lsp.util.apply_workspace_edit(action.edit, client.offset_encoding)
vim.cmd('write')
vim.cmd('quitall!')
"""


def release() -> tuple[int, int]:
    told = subprocess.run([NVIM or "nvim", "--version"], capture_output=True, text=True).stdout
    found = re.match(r"NVIM v(\d+)\.(\d+)", told)
    assert found, told
    return int(found[1]), int(found[2])


@pytest.mark.slow
@pytest.mark.skipif(NVIM is None, reason="no Neovim to try it in")
def test_neovim_shows_and_mends(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "editor.md").read_text(encoding="utf-8")
    newer, older = re.findall(r"```lua\n(.*?)```", page, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text("[tool.codemod]\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "init.lua").write_text(newer if release() >= (0, 11) else older)
    (tmp_path / "driver.lua").write_text(DRIVER)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "codemod").write_text(f'#!/bin/sh\nexec {sys.executable} -m codemods "$@"\n')
    (programs / "codemod").chmod(0o755)
    homes = {name: str(tmp_path / name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HOME")}
    done = subprocess.run(
        [NVIM or "nvim", "--headless", "-u", "init.lua", "-c", "luafile driver.lua"],
        cwd=tmp_path,
        env={**os.environ, **homes, "PYTHONPATH": str(ROOT), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert json.loads((tmp_path / "codes.json").read_text()) == ["attached-loss-total", "surplus-retain-graph"], done
    mended = SCRIPT.replace("retain_graph=True", "").replace("+= loss", "+= loss.item()")
    assert (tmp_path / "train.py").read_text() == mended, done
