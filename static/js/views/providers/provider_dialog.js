// The dialog "Connect a model": kind, address, key, model and test. The form is stored before a test,
// because only the server calls the models.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { seconds } from "../../base/time.js"
import { KINDS, kindOf, nameFor } from "../../models/providers/provider_kinds.js"
import { button, submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"
import { field, form, input, select } from "../components/form.js"
import EmbeddingFields from "./embedding_fields.js"
import LocalServersView from "./local_servers.js"
import RequestFields from "./request_fields.js"

const EFFORTS = ["usual", "off", "low", "medium", "high"]
const VISIONS = ["auto", "on", "off"]

// `provider` is the one to change, or null for a new one. A new provider that was stored only for a
// test is deleted when the dialog is dismissed.
export async function connectModel(parts, provider = null) {
  let opened
  const content = (close) => {
    opened = new ProviderForm(parts, provider, close)
    return opened.nodes
  }
  const title = provider ? t("provider.change") : t("provider.connect")
  if (!(await openDialog({ title, content }))) await opened.discard()
}

// Opens the default provider if it can be changed, else a new one.
export function changeModel(parts) {
  const chosen = parts.store.providers.find((provider) => provider.is_default && provider.kind !== "demo")
  return connectModel(parts, chosen ?? null)
}

function labelOf({ name }) {
  return name ?? t("provider.compatible")
}

class ProviderForm {
  #parts
  #id
  #isNew
  // Empty: the stored key is kept. Null: the key is removed, because it belongs to another address.
  #typedKey = ""
  // The server requires a model name; this one is used until one is chosen.
  #modelBefore
  #settings
  #close
  #localServers
  #kind
  #url
  #key
  #model
  #effort
  #vision
  #embedding
  #requests
  #list = el("datalist", { id: "provider-models" })
  #outcome = el("div", { role: "status" })
  nodes

  constructor(parts, provider, close) {
    this.#parts = parts
    this.#id = provider?.id ?? null
    this.#isNew = provider === null
    this.#modelBefore = provider?.model ?? "none"
    this.#settings = provider?.settings ?? {}
    this.#close = close
    this.#localServers = new LocalServersView(parts, (server) => this.#choose(server))
    this.#makeFields(provider)
    this.#kind.control.addEventListener("change", () => {
      this.#dropKey()
      this.#showKind()
    })
    this.#url.control.addEventListener("input", () => this.#localServers.mark(this.#address()))
    this.#showKind()
    this.nodes = [el("p", { class: "dialog__lead" }, t("provider.lead")), this.#localServers.node, this.#form()]
  }

  // Lifecycle

  // Deletes a provider that was stored only for a test.
  async discard() {
    if (this.#isNew && this.#id) await this.#parts.providers.remove(this.#id).catch(() => {})
  }

  // Private

  #makeFields(provider) {
    const plain = { spellcheck: "false", autocomplete: "off" }
    const kinds = KINDS.map((it) => [it.kind, labelOf(it)])
    this.#kind = field({
      label: t("provider.kind"),
      control: select(kinds, provider?.kind ?? KINDS[0].kind),
    })
    this.#kind.control.name = "kind"
    this.#url = field({
      label: t("provider.url"),
      hint: t("provider.url_hint"),
      control: input({ type: "url", name: "base_url", value: provider?.base_url ?? "", ...plain }),
    })
    this.#key = field({
      label: t("provider.key"),
      hint: this.#isNew ? t("provider.key_hint") : t("provider.key_kept"),
      control: input({ type: "password", name: "api_key", ...plain }),
    })
    this.#model = field({
      label: t("provider.model"),
      hint: t("provider.model_hint"),
      control: input({ name: "model", value: provider?.model ?? "", list: "provider-models", ...plain }),
    })
    const efforts = EFFORTS.map((effort) => [effort, t(`effort.${effort}`)])
    this.#effort = field({
      label: t("provider.reasoning"),
      hint: t("provider.reasoning_hint"),
      control: select(efforts, this.#settings.reasoning ?? "usual"),
    })
    this.#vision = field({
      label: t("provider.vision"),
      hint: t("provider.vision_hint"),
      control: select(
        VISIONS.map((it) => [it, t(`vision.${it}`)]),
        this.#settings.vision ?? "auto",
      ),
    })
    this.#embedding = new EmbeddingFields(this.#settings)
    this.#requests = new RequestFields(this.#settings)
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
      fields: this.#fields,
      submit: () => this.#use(),
      children: [
        this.#kind.node,
        this.#url.node,
        this.#key.node,
        this.#model.node,
        this.#list,
        this.#effort.node,
        this.#vision.node,
        this.#requests.node,
        this.#embedding.node,
        this.#outcome,
        el("div", { class: "form__actions" }, test, save),
      ],
    })
  }

  get #fields() {
    const own = { kind: this.#kind, base_url: this.#url, api_key: this.#key, model: this.#model }
    return { ...own, ...this.#requests.byName, ...this.#embedding.byName }
  }

  #showKind() {
    const { defaultUrl } = kindOf(this.#kind.control.value)
    this.#url.control.placeholder = defaultUrl ?? "https://…/v1"
    const hint = defaultUrl ? t("provider.url_hint_usual", { url: defaultUrl }) : t("provider.url_hint")
    this.#url.node.querySelector(".field__hint").textContent = hint
    this.#localServers.mark(this.#address())
    this.#embedding.showKind(this.#kind.control.value)
    this.#requests.showKind(this.#kind.control.value)
  }

  #dropKey() {
    this.#typedKey = null
    this.#key.control.value = ""
    this.#key.control.placeholder = ""
  }

  #address() {
    return { kind: this.#kind.control.value, base_url: this.#url.control.value.trim() }
  }

  // Fills in a local server and its models.
  #choose({ kind, base_url: baseUrl, models }) {
    this.#kind.control.value = kind
    this.#url.control.value = baseUrl
    this.#dropKey()
    this.#showKind()
    this.#clearErrors()
    this.#offer(models.map((model) => model.id))
  }

  #offer(names) {
    replace(
      this.#list,
      names.map((name) => el("option", { value: name })),
    )
    const current = this.#model.control.value
    if (names.length > 0 && !names.includes(current) && (current === "" || this.#isNew))
      this.#model.control.value = names[0]
    this.#showStatus("good", t("provider.found", { n: names.length }))
  }

  // Stores the form. The key is kept in memory while the dialog is open, because the server removes it
  // when the address changes.
  async #save() {
    const { kind, base_url: baseUrl } = this.#address()
    if (baseUrl === "" && kindOf(kind).defaultUrl === null) return this.#requireField(this.#url)
    if (!this.#requests.requireValid() || !this.#embedding.requireNumbers()) return false
    if (this.#key.control.value !== "") this.#typedKey = this.#key.control.value
    const model = this.#model.control.value.trim() || this.#modelBefore
    const provider = await this.#parts.providers.save(this.#id, {
      name: nameFor({ kind, label: labelOf(kindOf(kind)), baseUrl, found: this.#localServers.found }),
      kind,
      baseUrl,
      key: this.#typedKey,
      model,
      settings: this.#chosenSettings(),
    })
    this.#id = provider.id
    if (this.#typedKey) this.#key.control.placeholder = t("provider.key_stored")
    this.#key.control.value = ""
    if (provider.api_key_cleared && this.#typedKey === "")
      return this.#requireField(this.#key, t("provider.key_cleared"))
    return true
  }

  // Keeps all other settings.
  #chosenSettings() {
    const advanced = this.#requests.applyTo(this.#embedding.applyTo(this.#settings))
    const { reasoning: _, vision: __, ...settings } = advanced
    const effort = this.#effort.control.value
    const vision = this.#vision.control.value
    return {
      ...settings,
      ...(effort !== "usual" && { reasoning: effort }),
      ...(vision !== "auto" && { vision }),
    }
  }

  #requireField(it, text = t("field.needed")) {
    it.showError(text)
    it.control.focus()
    return false
  }

  #clearErrors() {
    for (const it of Object.values(this.#fields)) it.showError("")
  }

  async #loadModels() {
    if (!(await this.#save())) return
    this.#showStatus("wait", t("provider.loading_models"))
    this.#offer(await this.#parts.providers.listModels(this.#id))
  }

  async #test() {
    if (this.#model.control.value.trim() === "") return this.#requireField(this.#model)
    if (!(await this.#save())) return
    this.#showStatus("wait", t("provider.testing"))
    const answer = await this.#parts.providers.test(this.#id)
    if (answer.ok) this.#showStatus("good", t("provider.works", { seconds: seconds(answer.latency_ms ?? 0) }))
    else this.#showStatus("bad", answer.error ? explain(answer.error) : t("provider.failed"))
  }

  async #use() {
    if (this.#model.control.value.trim() === "") return this.#requireField(this.#model)
    if (!(await this.#save())) return
    await this.#parts.providers.use(this.#id)
    this.#parts.toasts.show(t("provider.in_use", { model: this.#model.control.value.trim() }))
    this.#close(true)
  }

  async #try(act) {
    this.#clearErrors()
    try {
      await act()
    } catch (error) {
      this.#showStatus("bad", explain(error))
    }
  }

  async #busy(button, act) {
    button.disabled = true
    await this.#try(act)
    button.disabled = false
  }

  #showStatus(kind, text) {
    const name = { good: "check", bad: "alert", wait: "retry" }[kind]
    replace(this.#outcome, el("p", { class: `outcome outcome--${kind}` }, icon(name), el("span", {}, text)))
  }
}
