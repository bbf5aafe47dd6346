// Whispers: `/w`, who sees the next message, and what is known of the whispers of others.
import assert from "node:assert/strict"
import test from "node:test"
import ConversationActions from "../../static/js/actions/conversation.js"
import Emitter from "../../static/js/base/emitter.js"
import { group } from "../../static/js/models/conversation/message_grouping.js"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { rows } from "../../static/js/models/conversation/timeline_rows.js"
import Roster from "../../static/js/models/members/roster.js"
import { describe } from "../../static/js/models/queue/queue.js"
import { isSameAudience, recipientsOf } from "../../static/js/models/whispers/audience.js"
import WhisperChoices from "../../static/js/models/whispers/whisper_choices.js"
import { readWhisper } from "../../static/js/models/whispers/whisper_command.js"
import Store from "../../static/js/store.js"
import { MemoryStorage, message, snapshot } from "./support.mjs"

const MEMBERS = [
  { id: 2, display_name: "Ann" },
  { id: 3, display_name: "Ann Lee", aliases: ["Captain"] },
  { id: 4, display_name: "孙悟空" },
  { id: 5, display_name: "Sir Lancelot" },
]
const read = (text) => readWhisper(text, MEMBERS)

test("a text without the command is no whisper", () => {
  for (const text of ["Hello", "/wave Ann", "/wAnn hi", "say /w Ann hi", "w Ann"]) assert.equal(read(text), null, text)
})

test("the longest name counts, in any case, with an at sign, and by its aliases", () => {
  assert.deepEqual(read("/w Ann Hello"), { ids: [2], text: "Hello" })
  assert.deepEqual(read("/w Ann Lee Hello"), { ids: [3], text: "Hello" })
  assert.deepEqual(read("/w ann leeway"), { ids: [2], text: "leeway" })
  assert.deepEqual(read("/W @sir lancelot  Psst"), { ids: [5], text: "Psst" })
  assert.deepEqual(read("/whisper Captain: hide"), { ids: [3], text: ": hide" })
  assert.deepEqual(read("/w Ａｎｎ hi"), { ids: [2], text: "hi" })
})

test("commas separate names, and the text keeps its lines", () => {
  assert.deepEqual(read("/w Ann Lee, Sir Lancelot,Ann one\ntwo"), { ids: [3, 5, 2], text: "one\ntwo" })
  assert.deepEqual(read("/w 孙悟空，Ann 你好"), { ids: [4, 2], text: "你好" })
  assert.deepEqual(read("/w Ann, Ann hi"), { ids: [2], text: "hi" })
})

test("Chinese text follows a name without a space", () => {
  assert.deepEqual(read("/w 孙悟空你好"), { ids: [4], text: "你好" })
})

test("a name alone has no text", () => {
  assert.deepEqual(read("/w Ann"), { ids: [2], text: "" })
})

test("a word that is no name is named, and nothing is sent", () => {
  assert.deepEqual(read("/w Anna hello"), { unknown: "Anna" })
  assert.deepEqual(read("/w Ann, Bob hello"), { unknown: "Bob" })
  assert.deepEqual(read("/w"), { unknown: "" })
  assert.deepEqual(read("/w Ann,"), { unknown: "" })
  assert.deepEqual(readWhisper("/w  hi", [{ id: 1, display_name: "" }]), { unknown: "hi" })
})

test("recipients are the audience without the author", () => {
  assert.deepEqual(recipientsOf([1, 2, 3], 2), [1, 3])
  assert.deepEqual(recipientsOf([2], 2), [2])
  assert.equal(isSameAudience([1, 2], [2, 1]), true)
  assert.equal(isSameAudience([1, 2], null), false)
  assert.equal(isSameAudience(undefined, null), true)
})

test("the choice stays for its conversation over a reload until it is cleared", () => {
  const storage = new MemoryStorage()
  new WhisperChoices(storage, 1).write(7, [3, 4])

  const choices = new WhisperChoices(storage, 1)

  assert.deepEqual(choices.read(7), [3, 4])
  assert.equal(choices.read(8), null)
  assert.equal(new WhisperChoices(storage, 2).read(7), null)
  choices.write(7, [])
  assert.equal(choices.read(7), null)
  assert.equal(storage.items.size, 0)
})

test("a choice that cannot be stored stays on the page", () => {
  const storage = {
    getItem: () => "not json",
    setItem: () => {
      throw new Error("full")
    },
  }
  const choices = new WhisperChoices(storage, 1)

  assert.equal(choices.read(7), null)
  choices.write(7, [3])

  assert.deepEqual(choices.read(7), [3])
})

test("without a character in its audience a whisper is for people", () => {
  const roster = new Roster([
    { id: 1, kind: "human" },
    { id: 2, kind: "character" },
  ])

  assert.equal(roster.isForPeople([1, 9]), true)
  assert.equal(roster.isForPeople([1, 2]), false)
})

function open(isForPeople) {
  const conversation = new OpenConversation({ conversationId: 7, isForPeople })
  conversation.restore(snapshot({ messages: [message({ seq: 1 })], rev: 1 }))
  return conversation
}

test("an advanced revision changes nothing else, and later events follow it", () => {
  const conversation = open()

  assert.equal(conversation.apply({ type: "rev_advanced", rev: 2 }), null)
  assert.equal(conversation.apply({ type: "rev_advanced", rev: 2 }), null)
  assert.equal(conversation.rev, 2)
  assert.equal(conversation.timeline.messages.length, 1)
  assert.equal(conversation.apply({ type: "message_created", rev: 3, message: message({ seq: 3 }) }), "messages")
  assert.equal(conversation.apply({ type: "rev_advanced", rev: 5 }), "gap")
})

const PRIVATE_RUN = { id: "r", conversation_id: 7, run_seq: 1, status: "running", private: true }
const PRIVATE_ROUND = { id: 9, status: "active", state: "generating", slots: [], private: true }

test("a private run in a snapshot starts no stream and names no one", () => {
  const conversation = new OpenConversation({ conversationId: 7 })
  const state = { state: "generating", round: PRIVATE_ROUND, running_run: PRIVATE_RUN }

  conversation.restore(snapshot({ rev: 1, ...state }))

  const shown = describe(conversation)
  assert.equal(conversation.stream, null)
  assert.equal(conversation.isRunning, true)
  assert.deepEqual(
    [shown.isPrivate, shown.isSpeaking, shown.now, shown.next, shown.upcoming, shown.isFinishingFirst],
    [true, true, null, null, [], false],
  )
  assert.deepEqual([shown.hasRound, shown.acts], [false, ["pause"]])
})

test("a private round cannot be skipped or retried", () => {
  const queue = (state) => ({ state, round: { ...PRIVATE_ROUND, state }, queued_run: null, running_run: null })
  const acts = (state) => describe({ queue: queue(state), stream: null }).acts

  assert.deepEqual(acts("failed"), [])
  assert.deepEqual(acts("paused"), ["resume"])
})

test("a private run is queued or running next to a public round", () => {
  const conversation = open()
  const round = { ...PRIVATE_ROUND, id: 10, private: false, slots: [{ position: 0, membership_id: 4, status: "pending" }] }
  const event = { type: "queue_updated", state: "generating", round, queued_run: null, running_run: PRIVATE_RUN }

  conversation.apply({ ...event, rev: 2 })

  assert.deepEqual(describe(conversation).upcoming, [4])
  assert.equal(describe(conversation).isFinishingFirst, true)
  const queued = { ...event, state: "queued", running_run: null, queued_run: PRIVATE_RUN, round: PRIVATE_ROUND }
  conversation.apply({ ...queued, rev: 3 })
  assert.deepEqual([describe(conversation).isPrivate, describe(conversation).next], [true, null])
})

test("a private run that failed has no card", () => {
  const conversation = new OpenConversation({ conversationId: 7 })
  const failed = { ...PRIVATE_RUN, status: "failed" }

  conversation.restore(snapshot({ rev: 1, failed_run: failed }))
  conversation.notice.recall([failed], conversation.queue, null)

  assert.equal(conversation.notice.isEmpty, true)
})

test("the stream of a whispered reply has the audience of its run", () => {
  const conversation = open()
  const running = { id: "r", speaker_space_membership_id: 3, audience: [1, 3] }
  conversation.apply({ type: "queue_updated", rev: 2, state: "generating", running_run: running })
  conversation.apply({ type: "typing_start", run_id: "r", membership_id: 3, kind: "user_turn" })

  const [row] = rows({ conversation, entries: [], myMembershipId: 1, now: 0 }).filter(({ kind }) => kind === "stream")

  assert.deepEqual(row.audience, [1, 3])
})

test("the schedule reads past a whisper to people, and the newest message is judged for its audience", () => {
  const conversation = open((audience) => !audience.includes(3))
  const put = (seq, audience) => conversation.timeline.put(message({ seq, audience }))
  put(2, [1, 3])
  put(3, [1, 2])
  const { timeline } = conversation
  const [first, whisper] = timeline.messages

  assert.equal(timeline.tail.seq, 2)
  assert.equal(timeline.newestSeq, 3)
  assert.equal(timeline.isNewest(first), true)
  assert.equal(timeline.isNewest(whisper), true)
  put(4, null)
  assert.equal(timeline.isNewest(whisper), false)
})

test("a whisper begins a group of its own", () => {
  const entry = (audience) => ({ authorId: 1, persona: null, at: 1000, message: { audience } })

  const grouped = group([entry(null), entry([1, 2]), entry([2, 1]), entry([1, 3]), entry(null)])

  assert.deepEqual(
    grouped.map(({ startsGroup }) => startsGroup),
    [true, true, false, true, true],
  )
})

class FakeSocket extends Emitter {
  subscribe() {}
  unsubscribe() {}
}

// The actions of a user in conversation 7, whose posts are answered by `post(body)`.
function actionsOf(post) {
  const store = new Store({ socket: new FakeSocket(), storage: new MemoryStorage() })
  store.setUser({ id: 1, display_name: "Ann" })
  store.selectConversation(7)
  const bodies = []
  const api = {
    postMessage: (_, body) => {
      bodies.push(body)
      return post(body)
    },
  }
  return { actions: new ConversationActions({ api, store, socket: new FakeSocket() }), store, bodies }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))
const refuse = (fields) => Promise.reject(Object.assign(new Error(), fields))

test("a whisper that is sent again keeps its audience, also without its quotation or a mention", async () => {
  const answers = [
    () => refuse({ isNetwork: true }),
    () => refuse({ code: "invalid_value", param: "mentions" }),
    () => refuse({ code: "invalid_value", param: "reply_to_id" }),
    () => new Promise(() => {}),
  ]
  const { actions, store, bodies } = actionsOf(() => answers.shift()())
  actions.replyTo({ ...message({ seq: 1, audience: [1, 3] }), author_name: "Vera" })

  actions.send(7, "@Bob, listen", { fields: { audience: [1, 3], mentions: [4] } })
  await settled()
  const [{ clientId }] = store.outbox.entries
  await actions.retrySend(clientId)
  await settled()
  actions.sendWithoutReply(clientId)

  assert.deepEqual(
    bodies.map(({ audience, mentions, reply_to_id: replyTo }) => [audience, mentions, replyTo]),
    [
      [[1, 3], [4], 101],
      [[1, 3], [4], 101],
      [[1, 3], undefined, 101],
      [[1, 3], [4], undefined],
    ],
  )
})

test("the text of a whisper to someone who has left returns to the composer", async () => {
  const { actions, store } = actionsOf(() => refuse({ code: "invalid_value", param: "audience" }))
  actions.send(7, "Psst", { fields: { audience: [1, 3] } })
  await settled()

  actions.discard(store.outbox.entries[0].clientId)

  assert.equal(store.openConversation.returnedText, "Psst")
  assert.equal(store.outbox.entries.length, 0)
})

test("the quotation of a whisper carries its audience", () => {
  const { actions, store } = actionsOf(() => new Promise(() => {}))

  actions.replyTo({ ...message({ seq: 1, audience: [1, 3] }), author_name: "Vera" })

  assert.deepEqual(store.openConversation.replyTo.audience, [1, 3])
})
