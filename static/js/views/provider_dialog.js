// "Connect a model": where it is, a key if it wants one, which model, and a test in plain words.
// The form is stored as soon as something is asked of the server: only the server talks to models.
import { el, icon, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { nameFor, PRESETS } from "../models/presets.js"
import { button, submitButton } from "./buttons.js"
import { openDialog } from "./dialog.js"
import { explain } from "./explain.js"
import { field, form, input } from "./form.js"

// `provider` is one to change, or null for a new one.
export function connectModel(parts, provider = null) {
  return openDialog({
    title: provider ? t("provider.change") : t("provider.connect"),
    content: (close) => new ProviderForm(parts, provider, close).nodes,
  })
}

class ProviderForm {
  #parts
  #id
  #isNew
  #close
  #url
  #key
  #model
  #list = el("datalist", { id: "provider-models" })
  #outcome = el("div", { role: "status" })
  nodes

  constructor(parts, provider, close) {
    this.#parts = parts
    this.#id = provider?.id ?? null
    this.#isNew = provider === null
    this.#close = close
    this.#url = field({
      label: t("provider.url"),
      hint: t("provider.url_hint"),
      control: input({
        type: "url",
        name: "base_url",
        value: provider?.base_url ?? "",
        placeholder: "https://…/v1",
        spellcheck: "false",
        autocomplete: "off",
      }),
    })
    this.#key = field({
      label: t("provider.key"),
      hint: this.#isNew ? t("provider.key_hint") : t("provider.key_kept"),
      control: input({ type: "password", name: "api_key", autocomplete: "off", spellcheck: "false" }),
    })
    this.#model = field({
      label: t("provider.model"),
      hint: t("provider.model_hint"),
      control: input({
        name: "model",
        value: provider?.model ?? "",
        list: "provider-models",
        spellcheck: "false",
        autocomplete: "off",
      }),
    })
    this.nodes = [el("p", { class: "dialog__lead" }, t("provider.lead")), this.#presets(), this.#form()]
  }

  // Private

  #presets() {
    const click = (preset) => {
      this.#url.control.value = preset.baseUrl
      this.#markPreset()
      this.#try(() => this.#loadModels())
    }
    this.presets = el(
      "div",
      { class: "choices", role: "group", "aria-label": t("provider.presets") },
      PRESETS.map((preset) =>
        el(
          "button",
          { class: "choice", type: "button", "data-url": preset.baseUrl, on: { click: () => click(preset) } },
          preset.name,
        ),
      ),
    )
    this.#url.control.addEventListener("input", () => this.#markPreset())
    this.#markPreset()
    return this.presets
  }

  #form() {
    const models = button(t("provider.list"), { click: () => this.#try(() => this.#loadModels()) })
    const row = el("div", { class: "field__row" })
    this.#model.control.replaceWith(row)
    row.append(this.#model.control, models)
    const test = button(t("provider.test"), {
      click: (event) => this.#busy(event.currentTarget, () => this.#test()),
    })
    const save = submitButton(t("provider.use"))
    return form({
      fields: { base_url: this.#url, api_key: this.#key, model: this.#model },
      submit: () => this.#use(),
      children: [
        this.#url.node,
        this.#key.node,
        this.#model.node,
        this.#list,
        this.#outcome,
        el("div", { class: "form__actions" }, test, save),
      ],
    })
  }

  #markPreset() {
    for (const button of this.presets.children)
      button.setAttribute("aria-pressed", String(button.dataset.url === this.#url.control.value.trim()))
  }

  // Stores the form. The key leaves the page with it and does not come back.
  async #save() {
    const baseUrl = this.#url.control.value.trim()
    if (baseUrl === "") {
      this.#url.showError(t("field.needed"))
      this.#url.control.focus()
      return false
    }
    this.#url.showError("")
    const provider = await this.#parts.models.save(this.#id, {
      name: nameFor(baseUrl),
      baseUrl,
      key: this.#key.control.value,
      model: this.#model.control.value.trim(),
    })
    this.#id = provider.id
    if (this.#key.control.value !== "") this.#key.control.placeholder = t("provider.key_stored")
    this.#key.control.value = ""
    return true
  }

  async #loadModels() {
    if (!(await this.#save())) return
    this.#say("wait", t("provider.asking"))
    const names = await this.#parts.models.models(this.#id)
    replace(
      this.#list,
      names.map((name) => el("option", { value: name })),
    )
    if (this.#model.control.value === "" && names.length > 0) this.#model.control.value = names[0]
    this.#say("good", t("provider.found", { n: names.length }))
  }

  async #test() {
    if (!(await this.#save())) return
    this.#say("wait", t("provider.testing"))
    const answer = await this.#parts.models.test(this.#id)
    if (answer?.ok === false)
      this.#say("bad", answer.error?.message ?? answer.message ?? t("provider.failed"))
    else this.#say("good", t("provider.works"))
  }

  async #use() {
    if (!(await this.#save())) return
    if (this.#model.control.value.trim() === "") {
      this.#model.showError(t("field.needed"))
      this.#model.control.focus()
      return
    }
    await this.#parts.models.use(this.#id)
    this.#parts.toasts.show(t("provider.in_use", { model: this.#model.control.value.trim() }))
    this.#close(true)
  }

  async #try(act) {
    try {
      await act()
    } catch (error) {
      this.#say("bad", explain(error))
    }
  }

  async #busy(button, act) {
    button.disabled = true
    await this.#try(act)
    button.disabled = false
  }

  #say(kind, text) {
    const name = { good: "check", bad: "alert", wait: "retry" }[kind]
    replace(this.#outcome, el("p", { class: `outcome outcome--${kind}` }, icon(name), el("span", {}, text)))
  }
}
