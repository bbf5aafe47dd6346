// "Connect a model": where it is, a key if it wants one, which model, and a test in plain words.
// The form is stored as soon as something is asked of the server: only the server talks to models.
import { el, icon, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { seconds } from "../base/time.js"
import { nameFor, PRESETS } from "../models/presets.js"
import { button, submitButton } from "./buttons.js"
import { openDialog } from "./dialog.js"
import { explain } from "./explain.js"
import { field, form, input } from "./form.js"

// `provider` is one to change, or null for a new one. What was stored of a new one only to try it
// goes again when nobody wants it.
export async function connectModel(parts, provider = null) {
  let opened
  const content = (close) => {
    opened = new ProviderForm(parts, provider, close)
    return opened.nodes
  }
  const title = provider ? t("provider.change") : t("provider.connect")
  if (!(await openDialog({ title, content }))) await opened.forget()
}

// The model that speaks, as long as it can be changed; else a first one.
export function changeModel(parts) {
  const chosen = parts.store.providers.find((provider) => provider.is_default && provider.kind !== "demo")
  return connectModel(parts, chosen ?? null)
}

class ProviderForm {
  #parts
  #id
  #isNew
  #typedKey = ""
  // The server wants a name; until one is chosen this one stands for it.
  #modelBefore
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
    this.#modelBefore = provider?.model ?? "none"
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

  // Lifecycle

  // A provider that was stored only to try it.
  async forget() {
    if (this.#isNew && this.#id) await this.#parts.models.remove(this.#id).catch(() => {})
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

  // Stores the form. The key leaves the page with it and does not come back; it is kept in memory as
  // long as the dialog is open, because the server forgets it when the address changes.
  async #save() {
    const baseUrl = this.#url.control.value.trim()
    if (baseUrl === "") return this.#ask(this.#url)
    if (this.#key.control.value !== "") this.#typedKey = this.#key.control.value
    const model = this.#model.control.value.trim() || this.#modelBefore
    const provider = await this.#parts.models.save(this.#id, {
      name: nameFor(baseUrl),
      baseUrl,
      key: this.#typedKey,
      model,
    })
    this.#id = provider.id
    if (this.#typedKey !== "") this.#key.control.placeholder = t("provider.key_stored")
    this.#key.control.value = ""
    if (provider.api_key_cleared && this.#typedKey === "")
      return this.#ask(this.#key, t("provider.key_cleared"))
    return true
  }

  #ask(it, text = t("field.needed")) {
    it.showError(text)
    it.control.focus()
    return false
  }

  #clearErrors() {
    for (const it of [this.#url, this.#key, this.#model]) it.showError("")
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
    if (this.#model.control.value.trim() === "") return this.#ask(this.#model)
    if (!(await this.#save())) return
    this.#say("wait", t("provider.testing"))
    const answer = await this.#parts.models.test(this.#id)
    if (answer.ok) this.#say("good", t("provider.works", { seconds: seconds(answer.latency_ms ?? 0) }))
    else this.#say("bad", answer.error ? explain(answer.error) : t("provider.failed"))
  }

  async #use() {
    if (this.#model.control.value.trim() === "") return this.#ask(this.#model)
    if (!(await this.#save())) return
    await this.#parts.models.use(this.#id)
    this.#parts.toasts.show(t("provider.in_use", { model: this.#model.control.value.trim() }))
    this.#close(true)
  }

  async #try(act) {
    this.#clearErrors()
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
