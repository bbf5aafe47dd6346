// The editor of a preset: name, prompt order, samplers and texts. A preset of someone else is saved as
// a copy.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import PresetDocument from "../../models/presets/preset_document.js"
import { button, submitButton } from "../components/button.js"
import { confirm, openDialog } from "../components/dialog.js"
import { field, form, input } from "../components/form.js"
import { scriptList } from "../regex_scripts/script_list.js"
import PresetEntries from "./preset_entries.js"
import { samplerFields, textFields } from "./preset_fields.js"

// Resolves with the saved preset, or undefined.
export async function openPresetDialog(parts, id) {
  const { presets } = parts
  const [preset, defaults] = await Promise.all([presets.get(id), presets.defaults()])
  let editor
  const saved = await openDialog({
    title: preset.name,
    wide: true,
    isUnsaved: () => editor.isUnsaved,
    content: (close) => {
      editor = new PresetEditor(parts, { preset, defaults, close })
      editor.mount()
      return [editor.node, scriptsOf(parts, preset)]
    },
  })
  editor.unmount()
  return saved
}

// Allowing applies at once, unlike the other changes.
function scriptsOf(parts, preset) {
  return scriptList(parts, {
    scripts: preset.regex_scripts,
    isAllowed: preset.regex_allowed,
    mayAllow: parts.regexScripts.mayAllow(preset),
    allow: (allowed) => parts.presets.save(preset.id, { regex_allowed: allowed }),
  })
}

class PresetEditor {
  #parts
  #preset
  #close
  #isMine
  #draft
  #entries
  #name
  #save
  node

  constructor(parts, { preset, defaults, close }) {
    this.#parts = parts
    this.#preset = preset
    this.#close = close
    this.#isMine = parts.presets.isMine(preset)
    this.#draft = new PresetDocument(preset.document, defaults)
    this.#entries = new PresetEntries(this.#draft, () => this.#changed())
    this.#name = field({
      label: t("preset.name"),
      control: input({ name: "name", value: preset.name, maxlength: "100" }),
    })
    this.#save = submitButton(this.#isMine ? t("save") : t("preset.save_copy"))
    this.node = this.#form()
  }

  // Lifecycle

  mount() {
    this.#entries.mount()
    this.#name.control.addEventListener("input", () => this.#changed())
    this.#changed()
  }

  unmount() {
    this.#entries.unmount()
  }

  get isUnsaved() {
    return this.#name.control.value.trim() !== this.#preset.name || this.#draft.isChanged
  }

  // Private

  #form() {
    const add = button(t("preset.add_entry"), {
      look: "small quiet",
      icon: "plus",
      click: () => this.#entries.add(),
    })
    const reset = button(t("preset.reset_order"), {
      look: "small quiet",
      icon: "retry",
      click: () => {
        this.#draft.resetOrder()
        this.#entries.show()
        this.#changed()
      },
    })
    return form({
      fields: { name: this.#name },
      submit: () => this.#submit(),
      children: [
        !this.#isMine && el("p", { class: "field__hint" }, t("preset.not_mine")),
        this.#name.node,
        collapsible(t("preset.order"), true, [
          el("p", { class: "field__hint" }, t("preset.order_hint")),
          this.#entries.node,
          el("div", { class: "member__buttons" }, add, reset),
        ]),
        collapsible(t("preset.samplers"), false, [
          el("p", { class: "field__hint" }, t("preset.samplers_hint")),
          samplerFields(this.#draft, () => this.#changed()),
        ]),
        collapsible(t("preset.texts"), false, textFields(this.#draft, () => this.#changed())),
        el("div", { class: "form__actions" }, this.#others(), this.#save),
      ].filter(Boolean),
    })
  }

  #others() {
    const { id, name } = this.#preset
    const file = (format, label) => {
      const href = `/api/presets/${id}/export?format=${format}`
      return el("a", { class: "button button--quiet", href, download: "" }, label)
    }
    return [
      this.#isMine &&
        button(t("delete"), { look: "danger quiet", icon: "trash", click: () => this.#remove(name) }),
      el("span", { class: "grow" }),
      file("sillytavern", t("preset.export_st")),
      file("troupe", t("preset.export_own")),
    ]
  }

  #changed() {
    this.#save.disabled = this.#isMine && !this.isUnsaved
  }

  async #submit() {
    const name = this.#name.control.value.trim()
    const { presets, toasts } = this.#parts
    const document = this.#draft.json
    const saved = this.#isMine
      ? await presets.save(this.#preset.id, { name, document })
      : await presets.create(name, document)
    toasts.show(t("saved"))
    this.#close(saved)
  }

  async #remove(name) {
    const isSure = await confirm({
      title: t("preset.delete_title", { name }),
      text: t("preset.delete_text"),
      action: t("delete"),
    })
    if (!isSure) return
    try {
      await this.#parts.presets.remove(this.#preset.id)
      this.#close({ ...this.#preset, status: "deleted" })
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }
}

function collapsible(title, isOpen, children) {
  return el(
    "details",
    { class: "block", open: isOpen },
    el("summary", { class: "block__summary" }, el("span", { class: "grow" }, title)),
    el("div", { class: "preset__fold" }, children),
  )
}
