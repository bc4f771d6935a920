#!/usr/bin/env node
"use strict";
// Starts the program from V8's own compiled form where that was made by this very Node: compiling takes longer than
// all the rest of a short run. Anything else (another Node, no cache) costs nothing but the time. The program's text is
// plain ASCII, so it need not be decoded.
const { readFileSync } = require("node:fs");
const { Script } = require("node:vm");

const file = `${__dirname}/main.cjs`;
const read = (path) => {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
};
const wrapped = `(function (exports, require, module, __filename, __dirname) {${readFileSync(file, "latin1")}\n})`;
const script = new Script(wrapped, { filename: file, cachedData: read(`${__dirname}/main.cache`) });
script.runInThisContext()(exports, require, module, file, __dirname);
module.exports = script;
