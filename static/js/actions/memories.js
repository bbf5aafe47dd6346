// The memories of a space: list, search, add, change, delete, forget, prune, import and export them, and
// those of a run's prompt.
import { isTextConflict } from "../models/memories/memory.js"
import { withMemorySettings } from "../models/memories/memory_settings.js"

const PAGE = 30
// The maximum number of memories to read; a message has fewer, because a model returns at most ten for
// several messages.
const MOST_OF_A_MESSAGE = 100
// How often a change is sent again because others have changed other fields meanwhile.
const MAX_ATTEMPTS = 3

export default class MemoryActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // `filter` has the names of the API; `cursor` is that of the previous page.
  list(spaceId, filter, cursor = null) {
    return this.#api.memories(spaceId, { ...filter, before: cursor, limit: PAGE })
  }

  // Returns a page of the memories that were made from a message.
  learnedFrom(spaceId, messageId) {
    return this.#api.memories(spaceId, { source_message_id: messageId, limit: MOST_OF_A_MESSAGE })
  }

  create(spaceId, fields) {
    return this.#api.createMemory(spaceId, fields)
  }

  // Returns the changed memory. `memory` is the one that the user has seen. If others have changed other
  // fields meanwhile, the change is applied to theirs. Throws `edit_conflict` if they have changed the
  // text as well.
  async change(memory, changes) {
    let version = memory.version
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#api.changeMemory(memory.space_id, memory.id, { ...changes, expected_version: version })
      } catch (error) {
        const { code, current } = error
        const isFinal = code !== "edit_conflict" || !current || attempt === MAX_ATTEMPTS
        if (isFinal || isTextConflict(memory, current, changes)) throw error
        version = current.version
      }
    }
  }

  remove(memory) {
    return this.#api.deleteMemory(memory.space_id, memory.id)
  }

  // Both return a number of memories. `scope` is `{ about_membership_id }`, `{ conversation_id }` or
  // `{ all: true }`.
  async countForgotten(spaceId, scope) {
    return (await this.#api.forgetMemories(spaceId, { ...scope, dry_run: true })).deleted
  }
  async forget(spaceId, scope) {
    return (await this.#api.forgetMemories(spaceId, scope)).deleted
  }

  // Both return a number of memories. `rules` are those of the API.
  async countPruned(spaceId, rules) {
    return (await this.#api.pruneMemories(spaceId, { ...rules, dry_run: true })).deleted
  }
  async prune(spaceId, rules) {
    return (await this.#api.pruneMemories(spaceId, { ...rules, dry_run: false })).deleted
  }

  // Requests to learn from the messages of a conversation from which nothing was learned yet; if there are
  // none, from its newest messages again. The memories are stored in the background.
  learn(spaceId, conversationId) {
    return this.#api.learnFromMessages(spaceId, { conversation_id: conversationId })
  }

  // Returns the report.
  importFile(spaceId, file) {
    return this.#api.importMemories(spaceId, file)
  }
  exportPath(spaceId) {
    return this.#api.memoriesExportPath(spaceId)
  }

  // Returns the memories that the prompt of a run contained, and those that came close.
  async recalledBy(runId) {
    return (await this.#api.memoriesOfRun(runId)).data
  }

  // Returns the id of the first source message of a memory, or null if no source is left.
  async sourceOf({ conversation_id: id, source_from_seq: from, source_to_seq: to }) {
    const { data } = await this.#api.messages(id, { after: from - 1, limit: 1 })
    const [message] = data
    return message && message.seq <= (to ?? from) ? message.id : null
  }

  // Returns how many memories are embedded, and the state of the background tasks.
  state(spaceId) {
    return this.#api.memoryState(spaceId)
  }

  // Tests `{ provider_id, model }`; returns `{ dimensions }`.
  testEmbedding(spaceId, choice) {
    return this.#api.testEmbedding(spaceId, choice)
  }

  // Changes the memory settings of a space.
  async changeSettings(space, rules) {
    const settings = withMemorySettings(space.settings, rules)
    const body = { settings, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }
}
