// The options of a provider for its requests, in the dialog "Connect a model".
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import {
  canArrangeRoles,
  problemOfExtraBody,
  readRequestOptions,
  ROLE_HANDLINGS,
  withRequestOptions,
} from "../../models/providers/request_options.js"
import { area, field, select } from "../components/form.js"

export default class RequestFields {
  #roles
  #extra
  // Collapsed unless an option is stored.
  node

  constructor(settings) {
    const { role_handling: roles, extra_body: extra } = readRequestOptions(settings)
    this.#roles = field({
      label: t("provider.role_handling"),
      hint: t("provider.role_handling_hint"),
      control: select(
        ROLE_HANDLINGS.map((it) => [it, t(`role_handling.${it}`)]),
        roles,
      ),
    })
    this.#extra = field({
      label: t("provider.extra_body"),
      hint: t("provider.extra_body_hint"),
      control: area({ name: "extra_body", value: extra, rows: "4", spellcheck: "false" }),
    })
    this.node = el(
      "details",
      { class: "note__more", open: roles !== "auto" || extra !== "" },
      el("summary", {}, t("provider.requests")),
      el("div", { class: "form__group" }, this.#roles.node, this.#extra.node),
    )
  }

  // The fields by their names in the API.
  get byName() {
    return { "settings.role_handling": this.#roles, "settings.extra_body": this.#extra }
  }

  // Hides the field of the roles for kinds of providers with an order of their own.
  showKind(kind) {
    this.#roles.node.hidden = !canArrangeRoles(kind)
  }

  // Returns the settings of the provider with these options.
  applyTo(settings) {
    return withRequestOptions(settings, {
      role_handling: this.#roles.control.value,
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
