// Colours for the text of a definition: YAML, and in each `source` of a step the language of the step.

import { HighlightStyle, StreamLanguage, syntaxHighlighting, tags } from "./codemirror.js";

const words = (text) => new Set(text.split(" "));

const C_LIKE = { line: "//", block: true, quotes: "\"'`" };
const SCRIPT = words("async await break case catch class const continue default delete do else export extends finally for from function if import in instanceof let new null of return static super switch this throw true false try typeof undefined var while yield");

/** How each language of steps writes comments, texts and words of its own. */
const LANGUAGES = {
  python: { line: "#", long: true, quotes: "\"'", words: words("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield") },
  javascript: { ...C_LIKE, words: SCRIPT },
  typescript: { ...C_LIKE, words: new Set([...SCRIPT, ...words("as declare enum implements interface keyof namespace private public readonly satisfies type")]) },
  bash: { line: "#", quotes: "\"'`", words: words("case do done elif else esac exit export fi for function if in local readonly return set shift then trap until while") },
  ruby: { line: "#", quotes: "\"'`", words: words("alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield") },
  lua: { line: "--", quotes: "\"'", words: words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while") },
};

/** One token of a source; *block* keeps what is open over the end of a line. */
function code(stream, block) {
  const { line, long, quotes, words } = LANGUAGES[block.language];
  if (block.open) {
    const end = stream.string.indexOf(block.open, stream.pos);
    const style = block.open === "*/" ? "comment" : "string";
    if (end < 0) stream.skipToEnd();
    else [stream.pos, block.open] = [end + block.open.length, ""];
    return style;
  }
  if (stream.eatSpace()) return null;
  if (stream.match(line)) return stream.skipToEnd(), "comment";
  if (LANGUAGES[block.language].block && stream.match("/*")) return (block.open = "*/"), "comment";
  const opened = long && stream.match(/^(?:"""|''')/);
  if (opened) return (block.open = opened[0]), "string";
  const quote = quotes.includes(stream.peek()) && stream.next();
  if (quote) {
    let escaped = false;
    for (let next; (next = stream.next()) && (next !== quote || escaped); ) escaped = !escaped && next === "\\";
    return "string";
  }
  if (stream.match(/^\d[\w.]*/)) return "number";
  const word = stream.match(/^[A-Za-z_$][\w$]*/);
  if (word) return words.has(word[0]) ? "keyword" : null;
  stream.next();
  return null;
}

const KEY = /^(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#,{}[\]"'&*!|>%@`-][^#,{}[\]]*?|-[^\s#,{}[\]]+?)(?=\s*:(?:\s|$))/;

/** One token of YAML. */
function yaml(stream, state) {
  if (stream.eatSpace()) return null;
  const before = stream.pos && stream.string[stream.pos - 1];
  if (stream.peek() === "#" && (!stream.pos || /\s/.test(before))) return stream.skipToEnd(), "comment";
  if (!state.flow && stream.match(/^-(?=\s|$)/)) return (state.language = ""), null;
  const column = stream.column();
  const key = stream.match(KEY);
  if (key) return Object.assign(state, { key: key[0].replace(/^["']|["']$/g, ""), column }), "propertyName";
  if (stream.match(/^[|>][-+\d]*(?=\s*(?:#|$))/)) {
    const language = state.key === "source" && LANGUAGES[state.language] ? state.language : "";
    state.block = { language, within: state.column, open: "" };
    return "keyword";
  }
  if (stream.match(/^[{[]/)) return (state.flow += 1), null;
  if (stream.match(/^[}\]]/)) return (state.flow = Math.max(0, state.flow - 1)), null;
  if (stream.match(/^"(?:[^"\\]|\\.)*"?|^'(?:[^']|'')*'?/)) return "string";
  if (stream.match(/^(?:true|false|null|~)(?=\s*(?:[,}\]#]|$))/)) return "atom";
  if (stream.match(/^[-+]?[\d.][\d_.eE+-]*(?=\s*(?:[,}\]#]|$))/)) return "number";
  if (stream.match(/^[:,]/)) return null;
  const value = stream.match(state.flow ? /^[^,{}[\]]+/ : /^(?:[^\s#]|\S#|\s+(?!#|$))+/);
  if (value && state.key === "language") state.language = value[0].trim();
  if (!value) stream.next();
  return null;
}

/** One token. A block scalar ends where a line is not indented more than the key of the block. */
function token(stream, state) {
  const { block } = state;
  if (stream.sol() && block && stream.indentation() <= block.within && stream.string.trim()) state.block = null;
  if (!state.block) return yaml(stream, state);
  if (block.language) return code(stream, block);
  stream.skipToEnd();
  return "string";
}

const language = StreamLanguage.define({
  name: "definition",
  startState: () => ({ key: "", column: 0, language: "", flow: 0, block: null }),
  copyState: (state) => ({ ...state, block: state.block && { ...state.block } }),
  token,
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", "'", '"'] } },
});

// The page's own sheet gives the classes their colours.
const colours = HighlightStyle.define([
  { tag: tags.propertyName, class: "cm-key" },
  { tag: tags.string, class: "cm-text" },
  { tag: [tags.number, tags.atom], class: "cm-number" },
  { tag: tags.keyword, class: "cm-word" },
  { tag: tags.comment, class: "cm-remark" },
]);

export const definitions = [language, syntaxHighlighting(colours)];
