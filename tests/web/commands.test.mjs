// Commands of the composer: what is a command, who may use it, and how its text is read; quick replies.
import assert from "node:assert/strict"
import test from "node:test"
import {
  COMMANDS,
  commandAt,
  commandsFor,
  insertCommand,
  matchingCommands,
  readCommand,
  readDice,
  readSeqs,
  readSpeaker,
} from "../../static/js/models/conversation/slash_commands.js"
import { quickRepliesOf, readQuickReplySet, withQuickReplies } from "../../static/js/models/conversation/quick_replies.js"
import { group } from "../../static/js/models/conversation/message_grouping.js"
import { isNarrator, isRoll, writerOf } from "../../static/js/models/message/narration.js"
import { isOoc } from "../../static/js/models/message/out_of_character.js"

const read = (text) => readCommand(text, COMMANDS)
const CAST = [
  { id: 1, display_name: "Ann", aliases: [] },
  { id: 2, display_name: "Ann Lee", aliases: ["Lee"] },
  { id: 3, display_name: "孙悟空", aliases: [] },
]

test("a command is a slash and a name at the beginning of the text", () => {
  assert.deepEqual(read("/sys The rain stops."), { name: "sys", argument: "The rain stops." })
  assert.deepEqual(read("  /ROLL 2d6 "), { name: "roll", argument: "2d6" })
  assert.deepEqual(read("/note\none\ntwo"), { name: "note", argument: "one\ntwo" })
  assert.deepEqual(read("/continue"), { name: "continue", argument: "" })
})

test("the short names of SillyTavern are known", () => {
  for (const [word, name] of [["nar", "sys"], ["sendas", "as"], ["r", "roll"], ["cont", "continue"], ["imp", "impersonate"]])
    assert.deepEqual(read(`/${word} x`), { name, argument: "x" })
})

test("a text that begins with two slashes or with a path is no command", () => {
  for (const text of ["//sys hello", "/usr/bin/env", "/etc/passwd is a file", "/", "/ hello", "/1", "/.hidden", "say /sys", "/你好", ""])
    assert.equal(read(text), null, text)
})

test("an unknown word is named, and so is a command that the role does not allow", () => {
  assert.deepEqual(read("/wave Ann"), { unknown: "wave" })
  assert.deepEqual(readCommand("/as Ann Hi.", commandsFor("member")), { forbidden: "as" })
  assert.deepEqual(readCommand("/sendas Ann Hi.", commandsFor("guest")), { forbidden: "sendas" })
})

test("each role is offered the commands that it may use", () => {
  const names = (role) => commandsFor(role).map(({ name }) => name)

  assert.deepEqual(names("guest"), ["w", "roll", "persona", "hide"])
  assert.deepEqual(names("member"), ["w", "sys", "roll", "continue", "impersonate", "persona", "hide", "branch", "note"])
  assert.deepEqual(names("moderator"), COMMANDS.map(({ name }) => name))
})

test("the list opens while the name of a command is being written", () => {
  assert.deepEqual(commandAt("/", 1), { start: 0, query: "" })
  assert.deepEqual(commandAt("/ro", 3), { start: 0, query: "ro" })
  assert.deepEqual(commandAt(" /ro 2d6", 4), { start: 1, query: "ro" })
  for (const [text, caret] of [["/roll 2d6", 9], ["//", 2], ["a /ro", 5], ["/roll", 2], ["/usr/b", 6], ["", 0]])
    assert.equal(commandAt(text, caret), null, `${text} at ${caret}`)
})

test("commands are found by the beginning of a name or a short name, and inserted with a space", () => {
  const names = (query) => matchingCommands(COMMANDS, query).map(({ name }) => name)

  assert.deepEqual(names("s"), ["sys", "as"])
  assert.deepEqual(names("IMP"), ["impersonate"])
  assert.deepEqual(names("xyz"), [])
  assert.deepEqual(insertCommand("/ro 2d6", { start: 0, query: "ro" }, { name: "roll" }), { text: "/roll 2d6", caret: 6 })
  assert.deepEqual(insertCommand("/", { start: 0, query: "" }, { name: "sys" }), { text: "/sys ", caret: 5 })
})

test("the longest name of a character is the speaker, also in the form of SillyTavern", () => {
  const speaker = (text) => {
    const found = readSpeaker(text, CAST)
    return found && [found.speaker.id, found.text]
  }

  assert.deepEqual(speaker("Ann Lee Hello."), [2, "Hello."])
  assert.deepEqual(speaker("ann Hello."), [1, "Hello."])
  assert.deepEqual(speaker("Lee Hello."), [2, "Hello."])
  assert.deepEqual(speaker("孙悟空你好"), [3, "你好"])
  assert.deepEqual(speaker('name="Ann Lee" Hello.'), [2, "Hello."])
  assert.deepEqual(speaker("name=Ann Hello."), [1, "Hello."])
  assert.deepEqual(speaker("Ann"), [1, ""])
  assert.equal(speaker("Anna Hello."), null)
  assert.equal(speaker('name="Bob" Hello.'), null)
})

test("dice are read as the server reads them", () => {
  assert.equal(readDice("2d6 + 3"), "2d6+3")
  assert.equal(readDice("D20"), "d20")
  assert.equal(readDice("20"), "1d20")
  assert.equal(readDice("d%-1"), "d%-1")
  for (const text of ["", "banana", "2d", "2d6*2", "2d6+", "1000d6"]) assert.equal(readDice(text), null, text)
})

test("messages are named by number or range; nothing is the newest", () => {
  assert.deepEqual(readSeqs("", 9), { from: 9, to: 9 })
  assert.deepEqual(readSeqs("3", 9), { from: 3, to: 3 })
  assert.deepEqual(readSeqs("#3 - 7", 9), { from: 3, to: 7 })
  assert.deepEqual(readSeqs("3–7", 9), { from: 3, to: 7 })
  for (const text of ["x", "0", "7-3", "-1", "3-"]) assert.equal(readSeqs(text, 9), null, text)
  assert.equal(readSeqs("", null), null)
})

test("a narrator, a roll and a text in the name of a character are recognized", () => {
  const rolled = { role: "system", metadata: { roll: { total: 9 } } }

  assert.equal(isNarrator({ message: { role: "system", metadata: {} } }), true)
  assert.equal(isNarrator({ message: rolled }), false)
  assert.equal(isRoll(rolled), true)
  assert.equal(isNarrator({ message: { role: "user", metadata: {} } }), false)
  assert.equal(isNarrator({ entry: { fields: { kind: "narrator" } } }), true)
  assert.equal(isNarrator({ entry: { fields: {} } }), false)
  assert.equal(writerOf({ metadata: { posted_by: "Ann" } }), "Ann")
  assert.equal(writerOf({ metadata: { posted_by: 7 } }), null)
})

test("the text of a narrator is not grouped with the author's own, and is not out of character", () => {
  const at = Date.parse("2026-11-30T12:00:00Z")
  const rows = [false, true, true].map((isNarrator) => ({ authorId: 1, persona: null, isNarrator, at }))

  assert.deepEqual(group(rows).map(({ startsGroup }) => startsGroup), [true, true, false])
  assert.equal(isOoc({ entry: { content: "((It rains.))", fields: { kind: "narrator" } } }), false)
})

test("quick replies of the settings are read, and malformed ones are ignored", () => {
  const replies = [{ label: "Look", text: "I look around.", color: "red" }, { label: "", text: "x" }, { label: "y" }, null]

  assert.deepEqual(quickRepliesOf({ quick_replies: replies }), [replies[0]])
  assert.deepEqual(quickRepliesOf({ quick_replies: "no" }), [])
  assert.deepEqual(quickRepliesOf(null), [])
})

test("saved quick replies keep other settings, and get a label from their text", () => {
  const settings = { scenario_override: "A ship.", quick_replies: [] }
  const rows = [
    { label: " Roll ", text: " /roll d20 ", color: "red" },
    { label: "", text: "I look around.\nSlowly." },
    { label: "empty", text: "  " },
  ]

  assert.deepEqual(withQuickReplies(settings, rows), {
    scenario_override: "A ship.",
    quick_replies: [
      { label: "Roll", text: "/roll d20", color: "red" },
      { label: "I look around.", text: "I look around.\nSlowly." },
    ],
  })
  assert.deepEqual(withQuickReplies(settings, []), { scenario_override: "A ship." })
})

test("a Quick Reply set of SillyTavern is read, and the scripts in it are counted", () => {
  const set = {
    version: 2,
    name: "Mine",
    qrList: [
      { id: 1, label: "Look", message: "I look around." },
      { id: 2, label: "", message: "/sys The rain stops." },
      { id: 3, label: "Scene", message: "/setvar key=x 1 | /echo {{getvar::x}}" },
      { id: 4, label: "Unknown", message: "/trigger" },
      { id: 5, label: "Empty", message: " " },
    ],
  }

  const { replies, nScripts } = readQuickReplySet(set)

  assert.deepEqual(
    replies.map(({ label }) => label),
    ["Look", "/sys The rain stops.", "Scene", "Unknown"],
  )
  assert.equal(nScripts, 2)
  const older = readQuickReplySet({ quickReplySlots: [{ label: "Hi", mes: "Hello." }] })
  assert.deepEqual(older.replies, [{ label: "Hi", text: "Hello." }])
  const long = { qrList: [{ label: "Long", message: "x".repeat(2500) }, { label: "More", message: "y" }] }
  const { nLeftOut, nShortened } = readQuickReplySet(long, 1)
  assert.deepEqual([nLeftOut, nShortened], [1, 1])
  assert.equal(readQuickReplySet({ entries: {} }), null)
  assert.equal(readQuickReplySet(null), null)
})
