// Writes `codemirror.js`, the part of CodeMirror that the editor of definitions needs, beside the scripts of the pages.
// `npm ci && npm run build` in this folder; the result is committed, and nothing is fetched at build, run or test.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const TARGET = new URL("../../src/adapters_http/console/static/codemirror.js", import.meta.url);

// style-mod makes a <style> element for a document, which the policy of the pages refuses; a constructed sheet is as good.
const FROM = "!root.head && root.adoptedStyleSheets";
const sheets = {
  name: "constructed sheets",
  setup: ({ onLoad }) =>
    onLoad({ filter: /style-mod\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      if (!text.includes(FROM)) throw new Error(`style-mod no longer says: ${FROM}`);
      return { contents: text.replace(FROM, "root.adoptedStyleSheets") };
    }),
};

/** The licences of all packages in the bundle, as a comment. */
async function licences(inputs) {
  const names = new Set(Object.keys(inputs).map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1]).filter(Boolean));
  const parts = [...names].sort().map(async (name) => {
    const folder = `node_modules/${name}`;
    const { version, license } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
    const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
    return `${name} ${version} (${license})\n\n${(await readFile(`${folder}/${file}`, "utf8")).trim()}`;
  });
  return (await Promise.all(parts)).join("\n\n");
}

const made = await build({
  entryPoints: ["codemirror.mjs"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  plugins: [sheets],
  metafile: true,
  write: false,
});
const { inputs } = Object.values(made.metafile.outputs)[0];
await writeFile(TARGET, made.outputFiles[0].text);
await writeFile(new URL("codemirror.LICENSES.txt", TARGET), `${await licences(inputs)}\n`);
