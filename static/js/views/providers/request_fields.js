// The options of a provider for its requests, in the dialog "Connect a model".
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import {
  canArrangeRoles,
  PREFILLS,
  problemOfExtraBody,
  readRequestOptions,
  ROLE_HANDLINGS,
  withRequestOptions,
} from "../../models/providers/request_options.js"
import { area, field, input, select } from "../components/form.js"

export default class RequestFields {
  #roles
  #prefill
  #samplers
  #extra
  // Collapsed unless an option is stored.
  node

  constructor(settings) {
    const { role_handling: roles, prefill, samplers, extra_body: extra } = readRequestOptions(settings)
    this.#roles = field({
      label: t("provider.role_handling"),
      hint: t("provider.role_handling_hint"),
      control: select(
        ROLE_HANDLINGS.map((it) => [it, t(`role_handling.${it}`)]),
        roles,
      ),
    })
    this.#prefill = field({
      label: t("provider.prefill"),
      hint: t("provider.prefill_hint"),
      control: select(
        PREFILLS.map((it) => [it, t(`prefill.${it}`)]),
        prefill,
      ),
    })
    this.#samplers = field({
      label: t("provider.samplers"),
      hint: t("provider.samplers_hint"),
      control: input({ name: "samplers", value: samplers, placeholder: t("provider.samplers_auto"), spellcheck: "false" }),
    })
    this.#extra = field({
      label: t("provider.extra_body"),
      hint: t("provider.extra_body_hint"),
      control: area({ name: "extra_body", value: extra, rows: "4", spellcheck: "false" }),
    })
    this.node = el(
      "details",
      { class: "note__more", open: [roles, prefill].some((it) => it !== "auto") || samplers + extra !== "" },
      el("summary", {}, t("provider.requests")),
      el("div", { class: "form__group" }, this.#roles.node, this.#prefill.node, this.#samplers.node, this.#extra.node),
    )
  }

  // The fields by their names in the API.
  get byName() {
    return {
      "settings.role_handling": this.#roles,
      "settings.prefill": this.#prefill,
      "settings.samplers": this.#samplers,
      "settings.extra_body": this.#extra,
    }
  }

  // Hides the fields that have no effect for a kind of provider.
  showKind(kind) {
    for (const field of [this.#roles, this.#samplers]) field.node.hidden = !canArrangeRoles(kind)
  }

  // Returns the settings of the provider with these options.
  applyTo(settings) {
    return withRequestOptions(settings, {
      role_handling: this.#roles.control.value,
      prefill: this.#prefill.control.value,
      samplers: this.#samplers.control.value,
      extra_body: this.#extra.control.value,
    })
  }

  // Returns whether the text can be added to requests; shows an error if not.
  requireValid() {
    const problem = problemOfExtraBody(this.#extra.control.value)
    const text = !problem
      ? ""
      : problem.reserved
        ? t("provider.extra_body_reserved", { name: problem.reserved })
        : t(`provider.extra_body_${problem}`)
    this.#extra.showError(text)
    if (problem) {
      this.node.open = true
      this.#extra.control.focus()
    }
    return !problem
  }
}
