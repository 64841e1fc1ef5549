// What may come next in the text of a definition: keys and values by its JSON Schema, and names that the text holds.

/** The schema at a `$ref`, or the schema itself. */
const whole = (schema, root) => (schema?.$ref ? schema.$ref.slice(2).split("/").reduce((at, name) => at?.[name], root) : schema);

/** All shapes of *schema* for an object that holds *held*: of several kinds the one that is written. */
function shapes(schema, root, held = {}) {
  const here = whole(schema, root);
  if (!here) return [];
  if (here.if) {
    const kind = here.if.properties?.kind?.const;
    return !kind || !held.kind || held.kind === kind ? shapes(here.then, root, held) : [];
  }
  const inner = [...(here.anyOf ?? []), ...(here.oneOf ?? []), ...(here.allOf ?? [])];
  return [here, ...inner.flatMap((one) => shapes(one, root, held))];
}

/** The schemas below *key* (a name, or null for an item of a list). */
const below = (found, key) =>
  found.flatMap((one) => (key === null ? [one.items].flat() : [one.properties?.[key] ?? (typeof one.additionalProperties === "object" ? one.additionalProperties : null)])).filter(Boolean);

const LINE = /^(\s*)((?:- +)*)(?:(["']?)([\w.-]+)\3\s*:(?:\s+(.*))?$)?/;

/** The parts of a line: the columns of its dashes, the column of what follows, and its key with the text behind. */
function partsOf(text) {
  const [, blank, dashes, , key, rest] = text.match(LINE);
  const at = [...dashes].flatMap((one, place) => (one === "-" ? [blank.length + place] : []));
  return { dashes: at, column: blank.length + dashes.length, key, rest: (rest ?? "").trim().replace(/^["']|["']$/g, "") };
}

/**
 * Where the line *at* is: the keys that lead to it (null: an item of a list), and the keys of its object with their plain
 * values. Read by indentation, so that the text may be half typed.
 */
export function placeIn(lines, at, column) {
  const stack = [{ column: -1, held: {} }];
  const leave = (gone) => { while (stack.length > 1 && gone(stack.at(-1))) stack.pop(); };
  let scalar = null;
  for (const [row, text] of lines.slice(0, at + 1).entries()) {
    const one = partsOf(text);
    const last = row === at;
    if (scalar !== null && (!text.trim() || one.column > scalar)) continue;
    scalar = null;
    if (!last && (!text.trim() || /^\s*#/.test(text))) continue;
    for (const dash of one.dashes) {
      leave((top) => top.column > dash || (top.key === null && top.column === dash));
      stack.push({ column: dash, key: null, held: {} });
    }
    const place = last && !text.trim() ? column : one.column;
    leave((top) => top.column >= place);
    if (last) return { path: stack.slice(1).map((entry) => entry.key), held: { ...heldBelow(lines, at, place), ...stack.at(-1).held } };
    if (!one.key) continue;
    stack.at(-1).held[one.key] = one.rest;
    stack.push({ column: one.column, key: one.key, held: {} });
    if (/^[|>][-+\d]*$/.test(one.rest)) scalar = one.dashes[0] ?? one.column;
  }
}

/** The keys below line *at* that belong to the same object. */
function heldBelow(lines, at, column) {
  const held = {};
  for (const text of lines.slice(at + 1)) {
    if (!text.trim()) continue;
    const one = partsOf(text);
    if (one.column < column || (one.dashes.length && one.dashes[0] < column)) break;
    if (one.key && one.column === column) held[one.key] = one.rest;
  }
  return held;
}

const option = (label, type, info, apply = label) => ({ label, type, info, apply });

/** The values that *found* allow. */
const valuesOf = (found) => [...new Set(found.flatMap((one) => [...(one.enum ?? []), ...(one.const !== undefined ? [one.const] : []), ...(one.type === "boolean" ? [true, false] : [])]))];

/** The completions at a position. *names*: `{steps, variables, state}` as last read by the checker. */
export function complete(doc, position, root, names) {
  const line = doc.lineAt(position);
  const before = line.text.slice(0, position - line.from);
  const template = before.match(/\{\{[^}]*?\b(?:(steps|variables|state)\.)?(\w*)$/);
  if (template) {
    const [, group, typed] = template;
    const labels = group ? (names[group] ?? []) : ["steps", "variables", "state", "trigger"];
    return { from: position - typed.length, options: labels.map((one) => option(one, "variable")) };
  }
  if (!root) return null;
  const lines = doc.toString().split("\n");
  const { path, held } = placeIn(lines, line.number - 1, before.length);
  const value = before.match(/^\s*(?:- +)*([\w.-]+)\s*:\s+([\w.-]*)$/);
  const key = before.match(/^\s*(?:- +)*([\w-]*)$/);
  if (!value && !key) return null;
  let found = shapes(root, root);
  for (const [depth, one] of path.entries()) found = below(found, one).flatMap((schema) => shapes(schema, root, depth === path.length - 1 ? held : {}));
  if (value) {
    const [, name, typed] = value;
    const options = valuesOf(below(found, name).flatMap((schema) => shapes(schema, root)));
    return { from: position - typed.length, options: options.map((one) => option(String(one), "constant")) };
  }
  const known = new Map(found.flatMap((one) => Object.entries(one.properties ?? {})));
  const options = [...known].filter(([name]) => !(name in held) || name === key[1]).map(([name, schema]) => option(name, "property", whole(schema, root)?.description, `${name}: `));
  return { from: position - key[1].length, options };
}
