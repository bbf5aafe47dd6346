// The editor of one lorebook: name and rules, a searchable list of entries, one open entry, and a test.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { matching } from "../../models/lorebooks/lorebook_entry.js"
import { button, iconButton, submitButton } from "../components/button.js"
import { confirm, openDialog } from "../components/dialog.js"
import { field, form, input, select, trackChanges } from "../components/form.js"
import { entryForm } from "./lorebook_entry_form.js"
import { lorebookTester } from "./lorebook_tester.js"

// Asks for the name of a new lorebook. Resolves to undefined if dismissed.
export function openNewLorebookDialog() {
  return openDialog({
    title: t("lorebook.new"),
    content: (close) => {
      const name = field({
        label: t("lorebook.name"),
        control: input({ name: "name", maxlength: "100", autofocus: true, autocomplete: "off" }),
      })
      const submit = async () => {
        if (name.control.value.trim() === "") name.showError(t("field.needed"))
        else close(name.control.value.trim())
      }
      const actions = el("div", { class: "form__actions" }, submitButton(t("lorebook.create")))
      return form({ fields: { name }, submit, children: [name.node, actions] })
    },
  })
}

// Resolves when the dialog is closed.
export async function openLorebookDialog(parts, id) {
  try {
    const book = await parts.lorebooks.open(id)
    let editor
    await openDialog({
      title: book.name,
      wide: true,
      isUnsaved: () => editor.isUnsaved,
      content: (close) => {
        editor = new LorebookEditor(parts, book, close)
        return editor.nodes
      },
    })
  } catch (error) {
    parts.toasts.error(error)
  }
}

class LorebookEditor {
  #parts
  #book
  #close
  #search = input({ type: "search", placeholder: t("lorebook.search"), "aria-label": t("lorebook.search") })
  #list = el("ul", { class: "lore-entries" })
  #count = el("p", { class: "member__note", role: "status" })
  #opened = el("div", { class: "lore-opened" })
  #openId = null
  #typed
  nodes

  constructor(parts, book, close) {
    this.#parts = parts
    this.#book = book
    this.#close = close
    this.#search.addEventListener("input", () => this.#showList())
    this.nodes = [
      collapsible(t("lorebook.part_book"), this.#rules()),
      collapsible(
        t("lorebook.part_test"),
        lorebookTester(parts, book.id, (id) => this.#openEntry(id, true)),
        true,
      ),
      el(
        "div",
        { class: "lore-book" },
        el(
          "div",
          { class: "lore-book__list" },
          el(
            "div",
            { class: "field__row" },
            this.#search,
            button(t("lorebook.new_entry"), { icon: "plus", click: () => this.#create() }),
          ),
          this.#count,
          this.#list,
        ),
        this.#opened,
      ),
    ]
    this.#showList()
    this.#showOpened()
  }

  // Concerns the rules only: entries are saved when a field loses the focus.
  get isUnsaved() {
    return this.#typed.isUnsaved()
  }

  // Private

  #rules() {
    const book = this.#book
    const fields = {
      name: field({ label: t("lorebook.name"), control: input({ value: book.name, maxlength: "100" }) }),
      scan_depth: field({
        label: t("lorebook.scan_depth"),
        hint: t("lorebook.scan_depth_hint"),
        control: input({ type: "number", min: "0", max: "1000", value: book.scan_depth ?? "" }),
      }),
      token_budget: field({
        label: t("lorebook.token_budget"),
        hint: t("lorebook.token_budget_hint"),
        control: input({ type: "number", min: "0", value: book.token_budget ?? "" }),
      }),
      recursive_scanning: field({
        label: t("lorebook.recursive"),
        control: select(
          ["", "yes", "no"].map((key) => [key, t(`lorebook_inherited.${key || "usual"}`)]),
          { true: "yes", false: "no" }[book.recursive_scanning] ?? "",
        ),
      }),
    }
    this.#typed = trackChanges(fields)
    const number = (name) => (fields[name].control.value === "" ? null : Number(fields[name].control.value))
    const submit = async () => {
      await this.#parts.lorebooks.change(book.id, {
        name: fields.name.control.value,
        scan_depth: number("scan_depth"),
        token_budget: number("token_budget"),
        recursive_scanning: { yes: true, no: false }[fields.recursive_scanning.control.value] ?? null,
      })
      this.#typed.keep()
      this.#parts.toasts.show(t("saved"))
    }
    const remove = button(t("lorebook.delete"), { look: "danger quiet", click: () => this.#removeBook() })
    const actions = el("div", { class: "form__actions" }, remove, submitButton(t("save")))
    return form({ fields, submit, children: [...Object.values(fields).map((it) => it.node), actions] })
  }

  #showList() {
    const shown = matching(this.#book.entries, this.#search.value)
    this.#count.textContent = t("lorebook.n_entries", { n: shown.length })
    replace(
      this.#list,
      shown.map((entry) => this.#row(entry)),
    )
  }

  #row(entry) {
    const name = nameOf(entry)
    const toggle = el("input", {
      type: "checkbox",
      class: "lore-entry__switch",
      checked: entry.enabled,
      "aria-label": t("lorebook.entry_on", { name }),
      on: { change: (event) => this.#switch(entry, event.currentTarget) },
    })
    return el(
      "li",
      { class: `lore-entry ${entry.enabled ? "" : "lore-entry--off"}`, "data-entry-id": String(entry.id) },
      el("label", { class: "lore-entry__toggle" }, toggle),
      el(
        "button",
        {
          class: "member__button",
          type: "button",
          "aria-current": entry.id === this.#openId ? "true" : null,
          on: { click: () => this.#openEntry(entry.id, true) },
        },
        el(
          "span",
          { class: "member__names" },
          bdi(name, "member__name truncate"),
          el("span", { class: "member__note truncate" }, summary(entry)),
        ),
      ),
      iconButton("trash", t("lorebook.delete_entry", { name }), { click: () => this.#removeEntry(entry) }),
    )
  }

  #openEntry(id, takesFocus = false) {
    this.#openId = id
    this.#showList()
    this.#showOpened()
    if (takesFocus) this.#opened.querySelector("[name=name]")?.focus()
  }

  #showOpened() {
    const entry = this.#book.entries.find((it) => it.id === this.#openId)
    const save = async (changes) => this.#put(await this.#parts.lorebooks.changeEntry(entry, changes))
    replace(
      this.#opened,
      entry ? entryForm(entry, save) : el("p", { class: "panel__empty" }, t("lorebook.choose_entry")),
    )
  }

  #put(entry) {
    const { entries } = this.#book
    const at = entries.findIndex((it) => it.id === entry.id)
    entries.splice(at === -1 ? entries.length : at, 1, entry)
    this.#showList()
  }

  async #create() {
    await this.#try(async () => {
      const entry = await this.#parts.lorebooks.createEntry(this.#book.id, { name: "", keys: [], content: "" })
      this.#search.value = ""
      this.#put(entry)
      this.#openEntry(entry.id, true)
    })
  }

  async #switch(entry, control) {
    await this.#try(async () => {
      const changed = await this.#parts.lorebooks.changeEntry(entry, { enabled: control.checked })
      this.#put(changed)
      if (entry.id === this.#openId) this.#showOpened()
      this.#list.querySelector(`[data-entry-id="${entry.id}"] input`)?.focus()
    })
  }

  async #removeEntry(entry) {
    const name = nameOf(entry)
    const words = {
      title: t("lorebook.delete_entry", { name }),
      text: t("lorebook.delete_entry_text"),
      action: t("delete"),
    }
    if (!(await confirm(words))) return
    await this.#try(async () => {
      await this.#parts.lorebooks.removeEntry(entry)
      this.#book.entries = this.#book.entries.filter((it) => it.id !== entry.id)
      if (entry.id === this.#openId) this.#openEntry(null)
      else this.#showList()
    })
  }

  async #removeBook() {
    const words = {
      title: t("lorebook.delete_title", { name: this.#book.name }),
      text: t("lorebook.delete_text"),
      action: t("delete"),
    }
    if (!(await confirm(words))) return
    await this.#try(async () => {
      await this.#parts.lorebooks.remove(this.#book.id)
      this.#close()
    })
  }

  async #try(act) {
    try {
      await act()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }
}

function nameOf(entry) {
  return entry.name || entry.keys[0] || t("lorebook.unnamed")
}

function summary(entry) {
  return entry.constant ? t("lorebook.constant") : entry.keys.join(", ") || t("lorebook.no_keys")
}

function collapsible(title, content, open = false) {
  return el(
    "details",
    { class: "lore-fold", open },
    el("summary", { class: "lore-fold__title" }, title),
    el("div", { class: "lore-fold__body" }, content),
  )
}
