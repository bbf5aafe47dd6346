// The options of a provider for its requests, in the dialog "Connect a model".
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import {
  canArrangeRoles,
  canCompleteText,
  COMPLETION_APIS,
  MODES,
  PREFILLS,
  problemOfExtraBody,
  readHeaders,
  readRequestOptions,
  ROLE_HANDLINGS,
  TOKENIZERS,
  withRequestOptions,
} from "../../models/providers/request_options.js"
import { area, field, input, select } from "../components/form.js"

export default class RequestFields {
  #mode
  #api
  #roles
  #prefill
  #tokenizer
  #samplers
  #extra
  #headers
  // Collapsed unless an option is stored.
  node

  constructor(settings) {
    const options = readRequestOptions(settings)
    const { mode, text_completion_api: api, role_handling: roles, prefill, tokenizer } = options
    const { samplers, extra_body: extra, extra_headers: headers } = options
    this.#mode = field({
      label: t("provider.mode"),
      hint: t("provider.mode_hint"),
      control: select(
        MODES.map((it) => [it, t(`provider_mode.${it}`)]),
        mode,
      ),
    })
    this.#api = field({
      label: t("provider.text_completion_api"),
      hint: t("provider.text_completion_api_hint"),
      control: select(
        [["auto", t("completion_api.auto")], ...COMPLETION_APIS.map((it) => [it.api, it.name])],
        api,
      ),
    })
    this.#mode.control.addEventListener("change", () => this.#showApi())
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
    this.#tokenizer = field({
      label: t("provider.tokenizer"),
      hint: t("provider.tokenizer_hint"),
      control: select([["auto", t("tokenizer.auto")], ...TOKENIZERS.map((it) => [it.tokenizer, it.name])], tokenizer),
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
    this.#headers = field({
      label: t("provider.extra_headers"),
      hint: t("provider.extra_headers_hint"),
      control: area({ name: "extra_headers", value: headers, rows: "2", spellcheck: "false", autocomplete: "off" }),
    })
    this.node = el(
      "details",
      { class: "note__more", open: Object.keys(withRequestOptions({}, options)).length > 0 },
      el("summary", {}, t("provider.requests")),
      el(
        "div",
        { class: "form__group" },
        Object.values(this.byName).map((it) => it.node),
      ),
    )
    this.#showApi()
  }

  // The fields by their names in the API.
  get byName() {
    return {
      "settings.mode": this.#mode,
      "settings.text_completion_api": this.#api,
      "settings.role_handling": this.#roles,
      "settings.prefill": this.#prefill,
      "settings.tokenizer": this.#tokenizer,
      "settings.samplers": this.#samplers,
      "settings.extra_body": this.#extra,
      "settings.extra_headers": this.#headers,
    }
  }

  // Hides the fields that have no effect for a kind of provider.
  showKind(kind) {
    this.#mode.node.hidden = !canCompleteText(kind)
    for (const field of [this.#roles, this.#samplers]) field.node.hidden = !canArrangeRoles(kind)
    this.#showApi()
  }

  #showApi() {
    this.#api.node.hidden = this.#mode.node.hidden || this.#mode.control.value === "chat"
  }

  // Returns the settings of the provider with these options.
  applyTo(settings) {
    return withRequestOptions(settings, {
      mode: this.#mode.node.hidden ? "chat" : this.#mode.control.value,
      text_completion_api: this.#api.control.value,
      role_handling: this.#roles.control.value,
      prefill: this.#prefill.control.value,
      tokenizer: this.#tokenizer.control.value,
      samplers: this.#samplers.control.value,
      extra_body: this.#extra.control.value,
      extra_headers: this.#headers.control.value,
    })
  }

  // Returns whether the texts can be added to requests; shows an error if not.
  requireValid() {
    return this.#isBodyValid() && this.#areHeadersValid()
  }

  #areHeadersValid() {
    const isValid = readHeaders(this.#headers.control.value) !== null
    this.#headers.showError(isValid ? "" : t("provider.extra_headers_line"))
    if (!isValid) {
      this.node.open = true
      this.#headers.control.focus()
    }
    return isValid
  }

  #isBodyValid() {
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
