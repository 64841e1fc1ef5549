// A Node that is started before its job. It reads the job from descriptor 3, then behaves as `node main.js`.
const fs = require("fs");
const { builtinModules, runMain } = require("module");
const parts = [];
for (;;) {
  const part = Buffer.alloc(65536);
  const size = fs.readSync(3, part, 0, part.length, null);
  if (size === 0) break;
  parts.push(part.subarray(0, size));
}
if (parts.length === 0) process.exit(0);
const [file, cwd, , ...variables] = Buffer.concat(parts).toString().split("\0");
for (const name of Object.keys(process.env)) delete process.env[name];
for (const variable of variables) {
  const end = variable.indexOf("=");
  process.env[variable.slice(0, end)] = variable.slice(end + 1);
}
process.chdir(cwd);
process.argv[1] = file;
process.execArgv.splice(process.execArgv.indexOf("-e"), 2);
delete process._eval;
const usual = ["console", "crypto", "process"];
const unusual = ["require", "module", "exports", "__filename", "__dirname", ...builtinModules];
for (const name of unusual) if (!usual.includes(name)) delete globalThis[name];
fs.writeSync(3, "\0");
fs.closeSync(3);
runMain(file);
