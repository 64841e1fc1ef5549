// What an editor shows: reads {schema, text, line, character} from stdin, and answers with the
// mistakes that the language server for YAML marks in the text, what it offers at the place, and what
// it says when the pointer rests there.
// Nothing is fetched: the schema is given, and every other request is refused.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const { getLanguageService } = require("yaml-language-server");
const { TextDocument } = require("vscode-languageserver-textdocument");
const { schema, text, line, character } = JSON.parse(readFileSync(0, "utf8"));

const document = TextDocument.create("file:///flow.yaml", "yaml", 1, text);
const settings = { documents: new Map(), get: () => document };
const server = getLanguageService({
  schemaRequestService: (uri) => Promise.reject(new Error(`${uri} is not to be fetched`)),
  workspaceContext: { resolveRelativePath: (path) => path },
  yamlSettings: { documents: settings, fileExtensions: [".yaml"] },
});
server.configure({
  validate: true,
  completion: true,
  hover: true,
  schemas: [{ uri: "wfcore://definition", fileMatch: ["*.yaml"], schema }],
  yamlVersion: "1.2",
});
const marked = await server.doValidation(document, false);
const offered = await server.doComplete(document, { line, character }, false);
const hovered = await server.doHover(document, { line, character });
console.log(
  JSON.stringify({
    marked: marked.map((one) => ({ line: one.range.start.line + 1, message: one.message })),
    offered: offered.items.map((one) => one.label),
    said: hovered?.contents.value ?? "",
  }),
);
