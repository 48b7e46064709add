"use strict";
// The unified diff of the hunks with these numbers, as `git apply` and `codemod patch` take it.
const unified = (edits, numbers) => {
  const files = new Map();
  for (const number of [...new Set(numbers)].sort((one, other) => one - other)) {
    const hunk = edits.hunks[number];
    files.set(hunk.file, [...(files.get(hunk.file) || []), hunk]);
  }
  let text = "";
  for (const file of [...files.keys()].sort((one, other) => (edits.files[one][0] < edits.files[other][0] ? -1 : 1))) {
    const hunks = files.get(file);
    hunks.sort((one, other) => one.line - other.line || one.gone.length - other.gone.length);
    text += `--- ${edits.files[file][0]}\n+++ ${edits.files[file][1]}\n`;
    let shift = 0;
    for (let from = 0, to = 0; from < hunks.length; from = to) {
      let end = hunks[from].line + hunks[from].gone.length;
      // Where the lines around two changes meet, git wants one hunk.
      for (to = from + 1; to < hunks.length && hunks[to].line - end <= 6; to++) end = hunks[to].line + hunks[to].gone.length;
      const block = hunk(hunks.slice(from, to), shift);
      text += block.text;
      shift = block.shift;
    }
  }
  return text;
};
const hunk = (changes, shift) => {
  const body = [];
  let before = 0;
  let after = 0;
  const put = (sign, line) => {
    body.push(sign + line + (line.endsWith("\n") ? "" : "\n\\ No newline at end of file\n"));
    before += sign !== "+";
    after += sign !== "-";
  };
  const start = changes[0].line - changes[0].above.length;
  let at = start;
  let last = { below: changes[0].above };
  for (const one of changes) {
    for (let line = at; line < one.line; line++) {
      const known = last.below[line - at] ?? one.above[one.above.length - (one.line - line)];
      put(" ", known);
    }
    for (const line of one.gone) put("-", line);
    for (const line of one.come) put("+", line);
    at = one.line + one.gone.length;
    last = one;
  }
  for (const line of last.below) put(" ", line);
  const place = (first, count) => `${count ? first : first - 1},${count}`;
  const head = `@@ -${place(start, before)} +${place(start + shift, after)} @@\n`;
  return { text: head + body.join(""), shift: shift + after - before };
};
