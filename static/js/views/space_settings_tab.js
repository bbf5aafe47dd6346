// Settings of the space: its name, who answers, what a message does to a running reply, the scene.
import { el, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { may } from "../models/rights.js"
import { button, submitButton } from "./buttons.js"
import { area, check, field, form, input, select } from "./form.js"
import { askToDeleteSpace } from "./space_dialogs.js"

const ORDERS = ["manual", "natural", "list", "pooled"]
const POLICIES = ["reject", "queue", "restart"]

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
    // What another person changed is shown, unless I am in the middle of changing something.
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
      may(this.#space.my_role, "delete_space") && this.#deletion(),
    )
  }

  #form() {
    const space = this.#space
    const fields = fieldsOf(space)
    const self = check({
      label: t("space.self"),
      hint: t("space.self_hint"),
      checked: space.allow_self_responses,
    })
    const save = el("div", { class: "form__actions form__actions--start" }, submitButton(t("save")))
    const node = form({
      fields,
      submit: () => this.#save(fields, self.control.checked),
      onError: (error) => this.#onError(error),
      children: [...Object.values(fields).map((it) => it.node), self.node, save],
    })
    node.addEventListener("input", () => {
      this.#isDirty = true
    })
    return node
  }

  async #save(fields, allowSelfResponses) {
    const body = this.#changes(fields, allowSelfResponses)
    if (Object.keys(body).length > 0) await this.#parts.spaces.changeSpace(this.#space, body)
    this.#isDirty = false
    this.#space = this.#parts.store.openSpace
    this.#parts.toasts.show(t("saved"))
  }

  // Only what is different is sent: two people who change two things do not undo each other.
  #changes(fields, allowSelfResponses) {
    const space = this.#space
    const value = (name) => fields[name].control.value
    const wanted = {
      name: value("name").trim(),
      description: value("description").trim(),
      reply_order: value("reply_order"),
      user_turn_debounce_ms: Math.round(Number(value("user_turn_debounce_ms")) * 1000),
      during_generation_user_input_policy: value("during_generation_user_input_policy"),
      allow_self_responses: allowSelfResponses,
    }
    const changed = Object.entries(wanted).filter(([name, it]) => it !== (space[name] ?? ""))
    const scenario = value("settings").trim()
    const { scenario_override: known = "", ...others } = space.settings ?? {}
    if (scenario === (known ?? "")) return Object.fromEntries(changed)
    const settings = scenario === "" ? others : { ...others, scenario_override: scenario }
    return { ...Object.fromEntries(changed), settings, settings_version: space.settings_version }
  }

  // Somebody else was faster: what I typed stays in the fields, the next save is against their version.
  #onError(error) {
    if (error.code !== "stale_settings" || !error.current) return
    this.#space = error.current
    this.#parts.store.putSpace(error.current)
  }

  #deletion() {
    const click = () => askToDeleteSpace(this.#parts, this.#space)
    return el(
      "section",
      { class: "panel__section" },
      button(t("space.delete"), { look: "danger small", click }),
    )
  }
}

// By the names of the columns. The scenario is the one of the settings that has a field.
function fieldsOf(space) {
  return {
    name: field({ label: t("space.name"), control: input({ value: space.name, maxlength: "100" }) }),
    description: field({ label: t("space.description"), control: area({ value: space.description ?? "" }) }),
    reply_order: orderField(space.reply_order),
    user_turn_debounce_ms: debounceField(space.user_turn_debounce_ms),
    during_generation_user_input_policy: field({
      label: t("space.policy"),
      control: select(
        POLICIES.map((key) => [key, t(`policy.${key}`)]),
        space.during_generation_user_input_policy,
      ),
    }),
    settings: field({
      label: t("space.scenario"),
      hint: t("space.scenario_hint"),
      control: area({ value: space.settings?.scenario_override ?? "", rows: "4" }),
    }),
  }
}

function debounceField(ms) {
  const control = input({
    type: "number",
    min: "0",
    max: "60",
    step: "0.1",
    inputmode: "decimal",
    value: String(ms / 1000),
  })
  return field({ label: t("space.debounce"), hint: t("space.debounce_hint"), control })
}

// The order explains itself as it is chosen.
function orderField(value) {
  const control = select(
    ORDERS.map((key) => [key, t(`order.${key}`)]),
    value,
  )
  const it = field({ label: t("space.order"), hint: t(`order.${value}_hint`), control })
  control.addEventListener("change", () => {
    it.node.querySelector(".field__hint").textContent = t(`order.${control.value}_hint`)
  })
  return it
}
