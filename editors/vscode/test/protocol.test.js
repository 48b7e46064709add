// The server through the client protocol that VS Code itself speaks, and the extension against a stand-in of the editor.
"use strict";

const assert = require("node:assert");
const { spawn } = require("node:child_process");
const Module = require("node:module");
const path = require("node:path");
const test = require("node:test");
const protocol = require("vscode-languageserver-protocol/node");

// The command is given as VS Code's setting gives it, word by word.
const [command, ...args] = JSON.parse(process.env.CODEMOD_COMMAND || '["codemod", "lsp"]');
const folder = path.join(__dirname, "..");
const SCRIPT = `import torch

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
`;

test("diagnostics, fixes and an orderly end", async () => {
  const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => server.on("exit", resolve));
  const connection = protocol.createProtocolConnection(
    new protocol.StreamMessageReader(server.stdout),
    new protocol.StreamMessageWriter(server.stdin),
  );
  const told = new Promise((resolve) =>
    connection.onNotification(protocol.PublishDiagnosticsNotification.type, (message) => {
      if (message.diagnostics.length) resolve(message);
    }),
  );
  connection.listen();
  const uri = `file://${folder}/train.py`;
  const { capabilities } = await connection.sendRequest(protocol.InitializeRequest.type, {
    processId: process.pid,
    rootUri: `file://${folder}`,
    capabilities: {
      workspace: { workspaceEdit: { documentChanges: true } },
      textDocument: { codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: [] } },
        dataSupport: true, resolveSupport: { properties: ["edit"] } } },
    },
  });
  assert(capabilities.codeActionProvider);
  connection.sendNotification(protocol.InitializedNotification.type, {});
  connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: "python", version: 1, text: SCRIPT },
  });
  const { diagnostics } = await told;
  assert.deepEqual(diagnostics.map((one) => one.code).sort(), ["attached-loss-total", "surplus-retain-graph"]);
  const actions = await connection.sendRequest(protocol.CodeActionRequest.type, {
    textDocument: { uri },
    range: diagnostics[0].range,
    context: { diagnostics, only: ["source.fixAll.codemod"] },
  });
  let [action] = actions;
  assert.equal(action.kind, "source.fixAll.codemod");
  if (!action.edit) action = await connection.sendRequest(protocol.CodeActionResolveRequest.type, action);
  const edits = action.edit.documentChanges.flatMap((change) => change.edits);
  const lines = SCRIPT.split("\n");
  const offset = ({ line, character }) => lines.slice(0, line).join("\n").length + (line ? 1 : 0) + character;
  const mended = edits
    .sort((a, b) => offset(b.range.start) - offset(a.range.start))
    .reduce((text, edit) => text.slice(0, offset(edit.range.start)) + edit.newText + text.slice(offset(edit.range.end)), SCRIPT);
  assert.equal(mended, SCRIPT.replace("retain_graph=True", "").replace("+= loss", "+= loss.item()"));
  await connection.sendRequest(protocol.ShutdownRequest.type);
  connection.sendNotification(protocol.ExitNotification.type);
  assert.equal(await ended, 0);
  connection.dispose();
});

test("the extension starts what the setting names, and says what to do where that fails", async () => {
  const shown = [];
  const disposable = { dispose() {} };
  const editor = {
    workspace: { getConfiguration: () => ({ get: () => ["/nowhere/codemod", "lsp"] }), onDidChangeConfiguration: () => disposable },
    commands: { registerCommand: () => disposable },
    window: { showErrorMessage: (text) => shown.push(text) },
  };
  const started = [];
  class LanguageClient {
    constructor(id, server, options) {
      started.push([id, server, options.documentSelector.map((one) => one.language)]);
    }
    async start() {
      throw new Error("spawn ENOENT");
    }
  }
  const load = Module._load;
  Module._load = (name, ...rest) =>
    name === "vscode" ? editor : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
  try {
    await require("../src/extension.js").activate({ subscriptions: [] });
  } finally {
    Module._load = load;
  }
  assert.deepEqual(started, [["codemod", { command: "/nowhere/codemod", args: ["lsp"] }, ["python", "python"]]]);
  assert.equal(shown.length, 1);
  assert.match(shown[0], /could not be started .*codemod\.command/);
});
