// What the editor of definitions imports from CodeMirror. Its languages are in `definition_mode.js`.

export { autocompletion, closeBrackets, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { HighlightStyle, StreamLanguage, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { EditorState, StateEffect, StateField } from "@codemirror/state";
export { Decoration, EditorView, WidgetType, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
export { tags } from "@lezer/highlight";
