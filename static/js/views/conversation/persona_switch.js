// @ts-check
// The button at the composer that shows the persona of the next post, with a menu to choose another one.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import { avatar } from "../components/avatar.js"
import { openMenu } from "../components/menu.js"

export default class PersonaSwitch {
  node
  #parts
  #signature = ""
  #isLoading = false

  constructor(parts) {
    this.#parts = parts
    this.node = el("button", {
      class: "icon-button composer__persona",
      type: "button",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      on: { click: () => this.#open() },
    })
  }

  update() {
    this.#loadChosen()
    const { name, url } = this.#shown()
    const signature = `${name}|${url}`
    if (signature === this.#signature) return
    this.#signature = signature
    const label = t("persona.switch", { name })
    this.node.setAttribute("aria-label", label)
    this.node.title = label
    replace(this.node, avatar({ name, url, size: "small" }))
  }

  async choose(persona) {
    try {
      await this.#parts.personas.choose(persona)
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  // A persona that is chosen for the space is shown at once; the others are loaded when they are needed.
  #loadChosen() {
    const { store, personas } = this.#parts
    if (this.#isLoading || store.personas || !store.myMembership?.active_persona_id) return
    this.#isLoading = true
    personas.load().catch(() => {})
  }

  #shown() {
    const persona = this.#parts.personas.current
    const { myMembership, user } = this.#parts.store
    const name = persona?.name ?? myMembership?.display_name ?? user?.display_name ?? ""
    return { name, url: persona?.avatar_url ?? null }
  }

  async #open() {
    const { personas, store, toasts, router } = this.#parts
    try {
      await personas.load()
    } catch (error) {
      return toasts.error(error)
    }
    const own = store.myMembership?.display_name ?? store.user.display_name
    const choices = store.personas.map((it) => ({
      label: it.name,
      face: avatar({ name: it.name, url: it.avatar_url, size: "small" }),
      run: () => this.choose(it),
    }))
    openMenu(this.node, [
      ...choices,
      {
        label: t("persona.as_myself", { name: own }),
        face: avatar({ name: own, size: "small" }),
        run: () => this.choose(null),
      },
      { label: t("persona.manage"), icon: "gear", run: () => router.go(paths.settings("personas")) },
    ])
  }
}
