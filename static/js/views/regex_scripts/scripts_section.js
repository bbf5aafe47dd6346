// The regex scripts that run in the open space, each of which a moderator can switch off. Hidden if
// there are none.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { presetsInUse, switchedOff } from "../../models/regex_scripts/regex_script.js"
import { check } from "../components/form.js"

export default class RegexScriptsSection {
  #root
  #parts
  #stops = []
  #sources = []
  #loaded = null
  #isGone = false

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#stops = ["spaces", "rights", "roster"].map((what) => store.on(what, () => this.#load()))
    this.#root.hidden = true
    this.#load()
  }

  unmount() {
    this.#isGone = true
    for (const stop of this.#stops) stop()
  }

  // Private

  // Loads again only if members or presets have changed.
  async #load() {
    const { openSpace: space, openRoster: roster } = this.#parts.store
    if (!space || !roster) return
    const members = roster.characters
    const ids = members.map((it) => [it.id, it.status, it.preset_id])
    const signature = JSON.stringify([space.id, ids, presetsInUse(space, members)])
    if (signature !== this.#loaded) {
      this.#loaded = signature
      try {
        this.#sources = await this.#parts.regexScripts.sources()
      } catch (error) {
        this.#parts.toasts.error(error)
      }
    }
    if (!this.#isGone) this.#show()
  }

  #show() {
    const { openSpace: space } = this.#parts.store
    this.#root.hidden = this.#sources.length === 0
    const controls = () => [...this.#root.querySelectorAll("input")]
    const focused = controls().indexOf(document.activeElement)
    replace(
      this.#root,
      el("div", { class: "panel__title" }, el("h2", {}, t("regex.title"))),
      el("p", { class: "field__hint" }, t("regex.space_hint")),
      this.#sources.map((it) => this.#switch(space, it)),
    )
    controls()[focused]?.focus()
  }

  #switch(space, source) {
    const { kind, id, name } = source
    const { node, control } = check({ label: bdi(name), checked: !switchedOff(space.settings, kind).includes(id) })
    control.dataset.source = `${kind}_${id}`
    control.disabled = !may(space.my_role, "settings")
    control.addEventListener("change", async () => {
      const { openSpace, toasts } = { ...this.#parts, openSpace: this.#parts.store.openSpace }
      try {
        await this.#parts.regexScripts.switchSource(openSpace, source, control.checked)
      } catch (error) {
        control.checked = !control.checked
        toasts.error(error)
      }
    })
    return node
  }
}
