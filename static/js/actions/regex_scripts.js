// Regex scripts: tests them, and switches those of a member or preset off in a space.
import { inFile, presetsInUse, withSwitch } from "../models/regex_scripts/regex_script.js"

export default class RegexScriptActions {
  #api
  #store

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // Returns `{ text, changed, error }`.
  test(script, text) {
    return this.#api.testRegexScript({ script: inFile(script), text })
  }

  // Only the owner allows scripts, not even an admin.
  mayAllow({ owner_id: owner }) {
    return owner === this.#store.user.id
  }

  // Returns what has allowed scripts in the open space: `{ kind, id, name }`.
  async sources() {
    const { openSpace: space, openRoster: roster } = this.#store
    const members = roster.characters.filter((it) => it.character_id && it.status === "active")
    const ofMember = async ({ id, character_id: character, display_name: name }) => {
      const found = await this.#orNothing(this.#api.character(character))
      return found?.regex_allowed && { kind: "membership_ids", id, name }
    }
    const ofPreset = async (id) => {
      const found = await this.#orNothing(this.#api.preset(id))
      return found?.regex_allowed && { kind: "preset_ids", id, name: found.name }
    }
    const found = await Promise.all([...members.map(ofMember), ...presetsInUse(space, members).map(ofPreset)])
    return found.filter(Boolean)
  }

  async switchSource(space, source, isOn) {
    const settings = withSwitch(space.settings, { ...source, isOn })
    const body = { settings, settings_version: space.settings_version }
    this.#store.putSpace(await this.#api.changeSpace(space.id, body))
  }

  // Private

  // A deleted character or preset still applies, but is not listed.
  async #orNothing(loading) {
    try {
      return await loading
    } catch (error) {
      if (error.status === 404) return null
      throw error
    }
  }
}
