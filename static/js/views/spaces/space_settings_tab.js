// The Settings tab: description, replies, auto mode, preset, memory, summaries,
// tools, quick replies.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { button, submitButton } from "../components/button.js"
import { form } from "../components/form.js"
import { memorySettingsSection } from "../memories/memory_settings_section.js"
import { presetChoice } from "../presets/preset_choice.js"
import { summarySettingsSection } from "../summaries/summary_settings_section.js"
import { quickRepliesSection } from "./quick_replies_section.js"
import { confirmDeleteSpace } from "./space_dialogs.js"
import { fieldsOf, groupsOf } from "./space_fields.js"
import { toolsSection } from "./tools_section.js"

export default class SpaceSettingsTab {
  #root
  #parts
  #space = null
  #isDirty = false
  #stops = []

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    // Changes of others are shown unless the user has unsaved input.
    this.#stops = [
      store.on("spaces", () => {
        if (!this.#isDirty && store.openSpace !== this.#space) this.#show()
      }),
    ]
    this.#show()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  #show() {
    this.#space = this.#parts.store.openSpace
    if (!this.#space) return
    const isMine = may(this.#space.my_role, "settings")
    const node = this.#form()
    if (!isMine) {
      for (const control of node.querySelectorAll("input, textarea, select")) control.disabled = true
      node.querySelector(".form__actions").remove()
    }
    replace(
      this.#root,
      !isMine && el("p", { class: "field__hint" }, t("space.read_only")),
      node,
      this.#preset(isMine),
      this.#memory(isMine),
      this.#summaries(isMine),
      this.#tools(isMine),
      this.#quickReplies(isMine),
      may(this.#space.my_role, "delete_space") && this.#deletion(),
    )
  }

  #form() {
    const fields = fieldsOf(this.#space, this.#parts.store.providers)
    const save = el("div", { class: "form__actions form__actions--start" }, submitButton(t("save")))
    const node = form({
      fields,
      submit: () => this.#save(fields),
      onError: (error) => this.#onError(error),
      children: [...groupsOf(fields), save],
    })
    node.addEventListener("input", () => {
      this.#isDirty = true
    })
    return node
  }

  #preset(mayChange) {
    const space = this.#space
    const preset = space.settings?.preset ?? {}
    const choice = presetChoice(this.#parts, {
      label: t("preset.choose"),
      hint: t("preset.choose_space_hint"),
      value: preset.preset_id ?? null,
      mayChange,
      choose: (id) => this.#parts.presets.chooseForSpace(this.#parts.store.openSpace, id),
      layers: () => ({ space: preset, spacePresetId: preset.preset_id ?? null }),
    })
    return el("section", { class: "panel__section" }, choice)
  }

  #memory(mayChange) {
    const save = async (rules) => {
      await this.#parts.memories.changeSettings(this.#parts.store.openSpace, rules)
      this.#space = this.#parts.store.openSpace
      // Keeps the input in the other fields.
      if (section.isConnected) section.replaceWith(this.#memory(mayChange))
      // The section is rendered again after saving: restores the focus on its button.
      if (document.activeElement === document.body)
        this.#root.querySelector("[data-section=memory] [type=submit]")?.focus()
    }
    const section = memorySettingsSection(this.#parts, { settings: this.#space.settings, disabled: !mayChange, save })
    return section
  }

  #summaries(mayChange) {
    const save = async (rules) => {
      await this.#parts.summaries.changeSettings(this.#parts.store.openSpace, rules)
      this.#space = this.#parts.store.openSpace
      // Keeps the input in the other fields.
      if (section.isConnected) section.replaceWith(this.#summaries(mayChange))
      // The section is rendered again after saving: restores the focus on its button.
      if (document.activeElement === document.body)
        this.#root.querySelector("[data-section=summaries] [type=submit]")?.focus()
    }
    const section = summarySettingsSection(this.#parts, { settings: this.#space.settings, disabled: !mayChange, save })
    return section
  }

  #tools(mayChange) {
    const save = async (tools) => {
      await this.#parts.spaces.changeTools(this.#parts.store.openSpace, tools)
      this.#space = this.#parts.store.openSpace
      // Keeps the input in the other fields.
      if (section.isConnected) section.replaceWith(this.#tools(mayChange))
    }
    const { settings } = this.#space
    const section = toolsSection(this.#parts, { settings, disabled: !mayChange, save })
    return section
  }

  #quickReplies(mayChange) {
    const save = async (replies) => {
      await this.#parts.spaces.changeQuickReplies(this.#parts.store.openSpace, replies)
      this.#space = this.#parts.store.openSpace
      // Keeps the input in the other fields.
      if (section.isConnected) section.replaceWith(this.#quickReplies(mayChange))
    }
    const { settings } = this.#space
    const section = quickRepliesSection(this.#parts, { settings, disabled: !mayChange, save })
    return section
  }

  async #save(fields) {
    const body = this.#changes(fields)
    if (Object.keys(body).length > 0) await this.#parts.spaces.changeSpace(this.#space, body)
    this.#isDirty = false
    this.#space = this.#parts.store.openSpace
    this.#parts.toasts.show(t("saved"))
  }

  // Sends only changed fields, so that two users do not overwrite each other. The scenario is part of
  // `settings`.
  #changes({ settings: scene, ...columns }) {
    const space = this.#space
    const changed = Object.entries(columns)
      .map(([name, it]) => [name, it.value()])
      .filter(([name, value]) => (value ?? "") !== (space[name] ?? ""))
    const scenario = scene.value()
    const { scenario_override: known = "", ...others } = space.settings ?? {}
    if (scenario === (known ?? "")) return Object.fromEntries(changed)
    const settings = scenario === "" ? others : { ...others, scenario_override: scenario }
    return { ...Object.fromEntries(changed), settings, settings_version: space.settings_version }
  }

  // Someone else has saved first: the input is kept, and the next save uses the newer version.
  #onError(error) {
    if (error.code !== "stale_settings" || !error.current) return
    this.#space = error.current
    this.#parts.store.putSpace(error.current)
  }

  #deletion() {
    const click = () => confirmDeleteSpace(this.#parts, this.#space)
    return el(
      "section",
      { class: "panel__section" },
      button(t("space.delete"), { look: "danger small", click }),
    )
  }
}
