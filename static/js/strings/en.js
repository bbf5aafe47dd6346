// All texts of the client in English, by key. Names in braces are filled in; `one` and `other` are
// selected by `n`. Other languages are files next to this one, with the same parts, keys and order: a
// key that is added here must be added to all of them.
import admin from "./en/admin.js"
import cards from "./en/cards.js"
import chats from "./en/chats.js"
import commands from "./en/commands.js"
import copilot from "./en/copilot.js"
import docs from "./en/docs.js"
import entrance from "./en/sign_in.js"
import errors from "./en/errors.js"
import files from "./en/files.js"
import lore from "./en/lorebooks.js"
import memories from "./en/memories.js"
import models from "./en/models.js"
import panel from "./en/panel.js"
import personas from "./en/personas.js"
import prompts from "./en/prompts.js"
import presets from "./en/presets.js"
import regex from "./en/regex.js"
import settings from "./en/settings.js"
import spaces from "./en/spaces.js"
import summaries from "./en/summaries.js"
import talk from "./en/conversation.js"
import tools from "./en/tools.js"
import warnings from "./en/warnings.js"
import whispers from "./en/whispers.js"

export default {
  "app.name": "Troupe",
  "app.description": "A conversation server for people and AI characters.",
  add: "Add",
  cancel: "Cancel",
  close: "Close",
  delete: "Delete",
  discard: "Discard",
  discard_title: "Discard your changes?",
  discard_text: "Your changes have not been saved.",
  loading: "Loading…",
  reload: "Reload",
  retry: "Retry",
  save: "Save",
  saved: "Saved.",
  skip: "Skip",
  undo: "Undo",
  sign_out: "Sign out",
  "field.needed": "Please fill this in.",
  "day.today": "Today",
  "day.yesterday": "Yesterday",

  ...entrance,
  ...spaces,
  ...talk,
  ...chats,
  ...commands,
  ...copilot,
  ...panel,
  ...prompts,
  ...files,
  ...lore,
  ...memories,
  ...summaries,
  ...cards,
  ...settings,
  ...personas,
  ...presets,
  ...regex,
  ...models,
  ...admin,
  ...errors,
  ...docs,
  ...tools,
  ...warnings,
  ...whispers,
}
