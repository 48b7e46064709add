// Starts `codemod lsp` and hands it the Python files and notebooks of the workspace. All else is the protocol.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("codemod").get("command");
  client = new LanguageClient(
    "codemod",
    { command, args },
    {
      documentSelector: [
        { scheme: "file", language: "python" },
        { notebook: { scheme: "file", notebookType: "jupyter-notebook" }, language: "python" },
      ],
    },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(
      `codemod: ${command} could not be started (${error.message}). Install it with its extra "lsp", ` +
        'and name its place in the setting "codemod.command".',
    );
  }
}

async function stop() {
  const stopped = client;
  client = undefined;
  await stopped?.stop();
}

async function restart() {
  await stop();
  await start();
}

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("codemod.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("codemod.command")) return restart();
    }),
  );
  return start();
};

exports.deactivate = stop;
