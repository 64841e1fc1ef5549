// The editor of a definition: the text field as an editor, marks by the checker as one types, flow and tests beside it.

import { _ } from "./app.js";
import { Decoration, EditorState, EditorView, StateEffect, StateField, WidgetType, autocompletion, bracketMatching, closeBrackets, defaultKeymap, drawSelection, highlightActiveLine, history, historyKeymap, indentUnit, indentWithTab, keymap, lineNumbers } from "./codemirror.js";
import { complete } from "./completion.js";
import { definitions } from "./definition_mode.js";

const form = document.getElementById("edit");
const field = document.getElementById("text");
const save = document.getElementById("save");
const stored = field.defaultValue;
let root, names = {};

/** The names in the text, as the checker last read it; they stay while the text has mistakes. */
function readNames() {
  const found = JSON.parse(document.getElementById("names").textContent);
  if (found.steps) names = found;
}

// Mistakes: the line is marked, and the words of the checker stand below it, with its proposal.
const setMarks = StateEffect.define();
const PROPOSAL = /did you mean ([\w.-]+)\?/;

class Says extends WidgetType {
  constructor(text, line) {
    super();
    Object.assign(this, { text, line });
  }

  eq(other) {
    return other.text === this.text && other.line === this.line;
  }

  toDOM(view) {
    const says = Object.assign(document.createElement("div"), { className: "cm-says", textContent: this.text });
    const meant = this.text.match(PROPOSAL)?.[1];
    const wrong = meant && unlike(view.state.doc.line(this.line).text, meant);
    if (wrong) {
      const fix = Object.assign(document.createElement("button"), { type: "button", className: "small", textContent: _("Change it to {word}", { word: meant }) });
      fix.addEventListener("click", () => {
        const line = view.state.doc.line(this.line);
        const at = line.text.indexOf(wrong);
        if (at >= 0) view.dispatch({ changes: { from: line.from + at, to: line.from + at + wrong.length, insert: meant } });
        view.focus();
      });
      says.append(fix);
    }
    return says;
  }

  ignoreEvent() {
    return true;
  }
}

/** The word of *text* that most resembles *meant*, without being it. */
function unlike(text, meant) {
  const pairs = (word) => [...word].slice(1).map((letter, at) => word[at] + letter);
  const wanted = new Set(pairs(meant));
  const likeness = (word) => (2 * pairs(word).filter((pair) => wanted.has(pair)).length) / (word.length + meant.length - 2 || 1);
  const [best] = (text.match(/[\w-]+/g) ?? []).filter((word) => word !== meant).map((word) => [likeness(word), word]).sort(([a], [b]) => b - a);
  return best?.[0] > 0.4 ? best[1] : null;
}

const marks = StateField.define({
  create: () => Decoration.none,
  update(held, transaction) {
    for (const effect of transaction.effects) if (effect.is(setMarks)) return drawn(transaction.state.doc, effect.value);
    return held.map(transaction.changes);
  },
  provide: (one) => EditorView.decorations.from(one),
});

function drawn(doc, mistakes) {
  const known = mistakes.filter(({ line }) => line >= 1 && line <= doc.lines).sort((a, b) => a.line - b.line);
  const parts = known.flatMap(({ line, text }, at) => {
    const { from, to } = doc.line(line);
    const says = Decoration.widget({ widget: new Says(text, line), block: true, side: 1 }).range(to);
    return known[at - 1]?.line === line ? [says] : [Decoration.line({ class: "cm-wrong" }).range(from), says];
  });
  return Decoration.set(parts, true);
}

/** The mistakes on the page, which the server wrote. */
const listed = () => [...document.querySelectorAll("#problems li")].map((one) => ({ line: Number(one.dataset.line), text: one.querySelector("span").textContent }));

// The flow: a node leads to its step in the text, and the step with the cursor is marked.
const STEP = /^\s*(?:- +)*(?:\{\s*)?["']?name["']?\s*:\s*["']?([A-Za-z_][\w-]*)/;

/** The steps by the lines of their names. */
function stepsIn(doc) {
  const nodes = new Set([...document.querySelectorAll("#drawn a[href^='#step-']")].map((one) => one.getAttribute("href").slice(6)));
  const found = [];
  for (let number = 1; number <= doc.lines; number++) {
    const name = doc.line(number).text.match(STEP)?.[1];
    if (nodes.has(name)) found.push({ number, name });
  }
  return found;
}

const stepAt = (doc, line) => stepsIn(doc).findLast(({ number }) => number <= line)?.name;

function markNodes(state) {
  const here = stepAt(state.doc, state.doc.lineAt(state.selection.main.head).number);
  const wrong = new Set(listed().map(({ line }) => stepAt(state.doc, line)));
  for (const node of document.querySelectorAll("#drawn a[href^='#step-']")) {
    const name = node.getAttribute("href").slice(6);
    name === here ? node.setAttribute("aria-current", "true") : node.removeAttribute("aria-current");
    node.classList.toggle("wrong", wrong.has(name));
  }
}

document.addEventListener("click", (event) => {
  const node = event.target.closest("#drawn a[href^='#step-']");
  const place = node && stepsIn(view.state.doc).find(({ name }) => name === node.getAttribute("href").slice(6));
  if (!place) return;
  event.preventDefault();
  const { from } = view.state.doc.line(place.number);
  view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  view.focus();
});

/** Ask the server what it says of the text; with *play*, also how the tests go. A later question overtakes an earlier one. */
let asked = 0, timer;
function check(play = false) {
  clearTimeout(timer);
  const mine = ++asked;
  const body = new FormData(form);
  body.set("workflow", form.dataset.workflow);
  play ? body.set("play", "1") : body.delete("play");
  const request = new XMLHttpRequest();
  request.open("POST", form.dataset.check);
  request.responseType = "document"; // no text is turned into markup, so that it passes Trusted Types
  request.onloadend = () => {
    if (mine !== asked) return;
    if (request.status === 200) take(request.response, play);
    else tell(request.status === 401 ? _("Signed out: reload the page to sign in") : _("Not checked: the server does not answer"));
  };
  request.send(new URLSearchParams(body));
}

function take(now, play) {
  for (const id of ["marks", ...(now.querySelector("#flow") ? ["drawn"] : []), ...(play ? ["tested"] : [])]) document.getElementById(id)?.replaceWith(now.getElementById(id));
  readNames();
  const mistakes = listed();
  view.dispatch({ effects: setMarks.of(mistakes) });
  markNodes(view.state);
  const [first] = mistakes;
  const where = first?.line ? { count: mistakes.length, line: first.line } : null;
  if (!first) tell("");
  else if (!where) tell(first.text);
  else tell(mistakes.length > 1 ? _("{count} mistakes, the first in line {line}", where) : _("Mistake in line {line}", where));
}

const wrong = document.getElementById("wrong");

/** Say what is wrong beside the heading; while something is, nothing is saved. */
function tell(text) {
  if (wrong.textContent !== text) wrong.textContent = text;
  wrong.hidden = !text;
  save.disabled = Boolean(text);
  save.title = text;
}

function changed(update) {
  if (update.docChanged) {
    field.value = update.state.doc.toString();
    form.dispatchEvent(new Event("input"));
    clearTimeout(timer);
    timer = setTimeout(check, 400);
  }
  if (update.docChanged || update.selectionSet) markNodes(update.state);
}

const narrow = matchMedia("(max-width: 720px)").matches;
const view = new EditorView({
  doc: field.value,
  extensions: [
    definitions, marks, lineNumbers(), highlightActiveLine(), drawSelection(), history(), indentUnit.of("  "), bracketMatching(), closeBrackets(),
    autocompletion({ override: [(context) => (context.explicit || context.matchBefore(/[\w.-]$|: $/) ? complete(context.state.doc, context.pos, root, names) : null)] }),
    keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ "aria-label": field.labels[0].textContent, spellcheck: "false" }),
    EditorView.updateListener.of(changed),
    narrow ? [EditorState.readOnly.of(true), EditorView.editable.of(false)] : [],
  ],
});
view.scrollDOM.tabIndex = 0; // what scrolls can be reached by keyboard, also where it is only read
field.after(view.dom);
field.hidden = true;
document.body.classList.add("scripted");
save.hidden = false;
fetch(form.dataset.schema).then(async (answer) => (root = answer.ok ? await answer.json() : undefined), () => {});
readNames();
view.dispatch({ effects: setMarks.of(listed()) });
if (wrong.textContent) tell(wrong.textContent);
markNodes(view.state);
if (field.value !== stored) check();

document.getElementById("play")?.addEventListener("click", (event) => (event.preventDefault(), check(true)));

const sheet = document.getElementById("sheet");
document.getElementById("run")?.addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("unsaved").hidden = field.value === stored;
  sheet.showModal();
});
sheet?.querySelector(".leave-sheet").addEventListener("click", () => sheet.close());
