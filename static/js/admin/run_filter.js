// The filter of the run list: status, kind, error, space and conversation.
import { bdi, el, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { ERRORS, KINDS, STATUSES } from "../models/runs/run_history.js"
import { iconButton } from "../views/components/button.js"
import { field, select } from "../views/components/form.js"

export default class RunFilter {
  #onChange
  #controls
  #locations = { space: null, conversation: null }
  #chips = el("div", { class: "chips" })
  node

  // `onChange` is called when the filter has changed.
  constructor(onChange) {
    this.#onChange = onChange
    this.#controls = {
      status: choice(t("run_history.status"), STATUSES, (it) => t(`run_status.${it}`)),
      kind: choice(t("run_history.kind"), KINDS, (it) => t(`run_kind.${it}`)),
      // The error codes of the log and of the API.
      error: choice(t("run_history.error"), ERRORS, (it) => it),
    }
    for (const { control } of Object.values(this.#controls)) control.addEventListener("change", onChange)
    const fields = Object.values(this.#controls).map(({ node }) => node)
    this.node = el("div", {}, el("div", { class: "filters" }, fields), this.#chips)
  }

  // Actions

  // Returns the filter for `AdminActions.runs`.
  get value() {
    const { status, kind, error } = this.#controls
    return {
      status: status.control.value,
      kind: kind.control.value,
      error: error.control.value,
      ...this.#locations,
    }
  }

  // `location` is `{ id, name }`, or null for all; `scope` is "space" or "conversation".
  narrow(scope, location) {
    this.#locations = { ...this.#locations, [scope]: location }
    this.#showChips()
    this.#onChange()
  }

  // Private

  #showChips() {
    const given = Object.entries(this.#locations).filter(([, location]) => location !== null)
    replace(
      this.#chips,
      given.map(([scope, { name }]) =>
        el(
          "span",
          { class: "tag chip" },
          bdi(name, "truncate"),
          iconButton("close", t("run_history.clear_filter", { name }), {
            look: "small",
            click: () => this.narrow(scope, null),
          }),
        ),
      ),
    )
  }
}

function choice(label, words, labelOf) {
  return field({ label, control: select([["", t("run_history.any")], ...words.map((it) => [it, labelOf(it)])], "") })
}
