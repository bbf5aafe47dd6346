// The commands that begin with `/` at the composer: which ones there are, who may use them, and how their
// text is read.
//
// A text is a command if its first word is a slash and a name: a letter, then letters, digits, `-` or `_`.
// Every other text is posted as it is, also one that begins with `//` or with a path.
import { may } from "../members/rights.js"
import { fold, nameAt } from "../members/name_at.js"

// `needs` is a right of `rights.js`, or null for all who may post. `aliases` are those of SillyTavern.
// The hint and the argument of a command are the strings `command.<name>` and `command.<name>_argument`.
export const COMMANDS = [
  { name: "w", aliases: ["whisper"], needs: null },
  { name: "sys", aliases: ["nar"], needs: "narrate" },
  { name: "as", aliases: ["sendas"], needs: "speak_for" },
  { name: "roll", aliases: ["r"], needs: null },
  { name: "continue", aliases: ["cont"], needs: "generate" },
  { name: "impersonate", aliases: ["imp"], needs: "suggest" },
  { name: "persona", aliases: [], needs: null },
  { name: "hide", aliases: [], needs: null },
  { name: "branch", aliases: [], needs: "generate" },
  { name: "note", aliases: [], needs: "prompt" },
]

// The most messages that one `/hide` changes.
export const MOST_HIDDEN = 100

const WORD = /^\s*\/([a-z][\w-]*)(?=\s|$)/i
const WORD_AT_CARET = /^\s*\/([a-z][\w-]*)?$/i
const DICE = /^(\d{0,3})d(\d{1,4}|%)([+-]\d{1,5})?$/i

// Returns the commands that a member with this role may use.
export function commandsFor(role) {
  return COMMANDS.filter(({ needs }) => needs === null || may(role, needs))
}

// Reads a text. Returns null if it is posted as it is, `{ name, argument }`, `{ unknown }` with the word, or
// `{ forbidden }` with the word if the command is not one of `commands`.
export function readCommand(text, commands) {
  const word = WORD.exec(text)
  if (!word) return null
  const found = COMMANDS.find((it) => isNamed(it, word[1].toLowerCase()))
  if (!found) return { unknown: word[1] }
  if (!commands.includes(found)) return { forbidden: word[1] }
  return { name: found.name, argument: text.slice(word[0].length).trim() }
}

// Returns `{ start, query }` of the command whose name is being written at the caret, or null.
export function commandAt(text, caret) {
  const before = text.slice(0, caret)
  const word = WORD_AT_CARET.exec(before)
  return word && /^(\s|$)/.test(text.slice(caret)) ? { start: before.indexOf("/"), query: word[1] ?? "" } : null
}

// Returns the commands whose name or alias begins with the query.
export function matchingCommands(commands, query) {
  const part = query.toLowerCase()
  return commands.filter(({ name, aliases }) => [name, ...aliases].some((it) => it.startsWith(part)))
}

// Replaces the name that is being written. Returns the text and the position of the caret.
export function insertCommand(text, { start, query }, { name }) {
  const rest = text.slice(start + 1 + query.length).trimStart()
  const written = `${text.slice(0, start)}/${name} `
  return { text: written + rest, caret: written.length }
}

// Reads the argument of `/as Name text` or of SillyTavern's `/sendas name=Name text`. Returns
// `{ speaker, text }`, or null if it begins with no name of these characters. Of several names that fit, the
// longest one counts.
export function readSpeaker(argument, characters) {
  const named = argument.replace(/^name\s*=\s*/i, "")
  const quoted = /^"([^"]*)"/.exec(named)
  if (quoted) {
    const speaker = characters.find(({ display_name: name }) => fold(name) === fold(quoted[1]))
    return speaker ? { speaker, text: named.slice(quoted[0].length).trim() } : null
  }
  const found = nameAt(named, characters)
  if (!found) return null
  const speaker = characters.find(({ id }) => id === found.id)
  return { speaker, text: named.slice(found.length).trim() }
}

// Returns the dice as the server reads them, such as `2d6+3`, or null. A number is one die with so many sides.
export function readDice(argument) {
  const text = argument.replace(/\s+/g, "")
  const dice = /^\d{1,4}$/.test(text) ? `1d${text}` : text
  return DICE.test(dice) ? dice.toLowerCase() : null
}

// Reads `7` or `3-9`, the numbers of messages; nothing is the newest message. Returns `{ from, to }`, or null.
export function readSeqs(argument, newest) {
  if (argument === "") return newest === null ? null : { from: newest, to: newest }
  const range = /^#?(\d{1,15})(?:\s*[-–—]\s*#?(\d{1,15}))?$/.exec(argument)
  if (!range) return null
  const [from, to] = [Number(range[1]), Number(range[2] ?? range[1])]
  return from >= 1 && to >= from ? { from, to } : null
}

function isNamed({ name, aliases }, word) {
  return name === word || aliases.includes(word)
}
