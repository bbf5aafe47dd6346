// The summaries of a conversation: list, request, change and restore them, and their settings.
import { conflictsOf } from "../models/summaries/summary.js"
import { withSummarySettings } from "../models/summaries/summary_settings.js"

// How often a change is sent again because others have changed other fields in the meantime.
const MAX_ATTEMPTS = 3

export default class SummaryActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  async list(conversationId) {
    return (await this.#api.summaries(conversationId)).data
  }

  // Requests the summaries that are missing or out of date; they are written in the background.
  summarize(conversationId) {
    return this.#api.summarize(conversationId)
  }

  // Returns the summary that is in use after the change. `summary` is the one that the user has seen. If
  // a newer one differs in other fields only, the change is applied to the newer one. Throws
  // `edit_conflict` if a field has two changes.
  async change(summary, changes) {
    let base = summary
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#api.changeSummary(base.id, { ...changes, expected_version: base.version })
      } catch (error) {
        const { code, current } = error
        const isFinal = code !== "edit_conflict" || !current || attempt === MAX_ATTEMPTS
        if (isFinal || conflictsOf(summary, current, changes).length > 0) throw error
        base = current
      }
    }
  }

  // Returns the new version in use, which has the text of this older one.
  restore(version) {
    return this.#api.restoreSummary(version.id)
  }

  // Changes the settings of summaries of a space.
  async changeSettings(space, rules) {
    const settings = withSummarySettings(space.settings, rules)
    const body = { settings, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }
}
