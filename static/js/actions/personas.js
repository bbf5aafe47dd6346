// @ts-check
// Personas: the user's own, their pictures, files, and the choice for a space. They are loaded when they
// are first needed.
import { NO_PERSONA, currentPersona } from "../models/personas/personas.js"

export default class PersonaActions {
  #api
  #store
  #local
  #loading = null

  constructor({ api, store, local }) {
    this.#api = api
    this.#store = store
    this.#local = local
  }

  // Loads the personas once; after a failure the next call tries again.
  async load() {
    if (this.#store.personas) return
    this.#loading ??= this.reload().finally(() => {
      this.#loading = null
    })
    await this.#loading
  }

  async reload() {
    const { id } = this.#store.user
    const personas = await this.#api.personas()
    if (this.#store.user?.id === id) this.#show(personas)
  }

  // Returns the persona of the next post in the open space: null if there is none, undefined if it is not
  // known here.
  get current() {
    const membership = this.#store.myMembership
    const activeId = membership?.active_persona_id ?? null
    return currentPersona({ all: this.#store.personas, activeId, choice: this.#choice(membership) })
  }

  // Chooses a persona, or null for none, for the open space.
  async choose(persona) {
    const membership = this.#store.myMembership
    if (!membership) return
    const body = { active_persona_id: persona?.id ?? null }
    const changed = await this.#api.changeMembership(membership.id, body)
    this.#remember(membership, persona ? null : NO_PERSONA)
    this.#store.putMembership(changed)
  }

  async create(body) {
    const made = await this.#api.createPersona(body)
    await this.reload()
    return made
  }

  async change(id, body) {
    await this.#api.changePersona(id, body)
    await this.reload()
  }

  async setPicture(id, file) {
    const changed = await (file ? this.#api.setPersonaAvatar(id, file) : this.#api.removePersonaAvatar(id))
    await this.reload()
    return changed
  }

  async remove(id) {
    await this.#api.deletePersona(id)
    await this.reload()
  }

  // Returns `{ n_imported, n_skipped, warnings_coded }`.
  async importFile(file) {
    const report = await this.#api.importPersonas(file)
    await this.reload()
    return report
  }

  get exportPath() {
    return this.#api.personaExportPath()
  }

  #show(personas) {
    this.#store.personas = personas
    this.#store.emit("personas")
  }

  #choice(membership) {
    try {
      return membership && this.#local.getItem(key(membership))
    } catch {
      return null
    }
  }

  #remember(membership, choice) {
    try {
      if (choice) this.#local.setItem(key(membership), choice)
      else this.#local.removeItem(key(membership))
    } catch {
      // Without storage the default persona is used.
    }
  }
}

function key({ id }) {
  return `troupe.persona.${id}`
}
