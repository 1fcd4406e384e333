#!/usr/bin/env node
// Starts the program for this platform, which npm installs as an optional dependency, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");
const { optionalDependencies } = require("./package.json");

const windows = process.platform === "win32";
// Windows on arm64 runs programs for x64.
const cpu = windows && process.arch === "arm64" ? "x64" : process.arch;
const name = `creole-${process.platform}-${cpu}`;

function fail(reason) {
  process.stderr.write(`creole: ${reason}\n`);
  process.exit(1);
}

function program() {
  if (!(name in optionalDependencies)) {
    const known = Object.keys(optionalDependencies).join(", ");
    fail(`there is no package ${name}, only ${known}; elsewhere build it: cargo install creole-gateway --locked`);
  }
  try {
    return require.resolve(`${name}/bin/creole${windows ? ".exe" : ""}`);
  } catch {
    fail(`the package ${name} is missing; install creole again with optional dependencies (no --omit=optional)`);
  }
}

const file = program();
const child = spawn(file, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`${file} does not start: ${error.message}`));

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
  // A terminal sends the signals of its keys to the program, too, which takes two at once for one.
  process.on(signal, () => windows || child.kill(signal));
}

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
