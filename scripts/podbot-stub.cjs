#!/usr/bin/env node
"use strict";
// Starts the program from V8's own compiled form where that was made by this very Node: compiling takes longer than
// all the rest of a short run. Anything else (another Node, no cache) costs nothing but the time. The program's text is
// plain ASCII, so it need not be decoded.
const { readFileSync } = require("node:fs");
const { Script } = require("node:vm");

const packs = new Map();
const modules = new Map();

function open(pack) {
  const file = `${__dirname}/${pack}.cjs`;
  const script = new Script(readFileSync(file, "latin1"), { filename: file, cachedData: cacheOf(pack) });
  packs.set(pack, script.runInThisContext());
  return packs.get(pack);
}

function cacheOf(pack) {
  try {
    return readFileSync(`${__dirname}/${pack}.cache`);
  } catch {
    return undefined;
  }
}

/** What Node takes its time to load, and many runs never use, or only while they wait for something else. */
const heavy = new Set(
  ["child_process", "crypto", "http", "http2", "https", "net", "tls"].map((name) => `node:${name}`),
);
const lazy = (name) => {
  let loaded;
  const get = (_none, key) => {
    loaded ??= require(name);
    return loaded[key];
  };
  return new Proxy({}, { get });
};

/** A part of the program by its name, as `core/main.js`; all else is Node's, or a parser. */
function load(name) {
  const [pack, part] = name.split("/");
  if (part === undefined || !part.endsWith(".js")) return heavy.has(name) ? lazy(name) : require(name);
  let module = modules.get(part);
  if (module === undefined) {
    module = { exports: {} };
    modules.set(part, module);
    (packs.get(pack) ?? open(pack))[part](module.exports, load, module, __dirname);
  }
  return module.exports;
}

load("core/main.js");
