// The World Info settings of the open space, collapsed by default.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { lorebookSettingsForm } from "./lorebook_settings_form.js"

export default class LorebookSettingsSection {
  #root
  #parts
  #stops = []
  #shown = null

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    this.#stops = ["spaces", "rights"].map((what) => store.on(what, () => this.#show()))
    this.#show()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  // Renders again only if the stored settings have changed, so that unsaved input is kept.
  #show() {
    const { openSpace: space } = this.#parts.store
    if (!space) return
    const signature = JSON.stringify([space.id, space.my_role, space.settings?.world_info])
    if (signature === this.#shown) return
    this.#shown = signature
    const controls = () => [...this.#root.querySelectorAll("summary, button, input, select")]
    const focusedIndex = controls().indexOf(document.activeElement)
    const isOpen = this.#root.querySelector(".lorebook-settings")?.open ?? false
    const rules = lorebookSettingsForm(this.#parts, {
      settings: space.settings,
      disabled: !may(space.my_role, "settings"),
      save: (settings) => this.#save(settings),
    })
    const summary = el("summary", { class: "lorebook-settings__summary" }, el("h2", {}, t("lorebook_settings.title")))
    const hint = el("p", { class: "field__hint" }, t("lorebook_settings.hint"))
    replace(this.#root, el("details", { class: "lorebook-settings note__more", open: isOpen }, summary, hint, rules))
    controls()[focusedIndex]?.focus()
  }

  // The form is rendered again after saving: restores the focus on the button.
  async #save(settings) {
    await this.#parts.lorebooks.changeLorebookSettings(this.#parts.store.openSpace, settings)
    if (document.activeElement === document.body) this.#root.querySelector("[type=submit]")?.focus()
  }
}
