// The quick replies of the open space: their labels and texts, in the order of their buttons.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import {
  LONGEST_LABEL,
  LONGEST_TEXT,
  MOST_REPLIES,
  quickRepliesOf,
  readQuickReplySet,
} from "../../models/conversation/quick_replies.js"
import { button, iconButton, submitButton } from "../components/button.js"
import { chooseFile } from "../components/file_choice.js"
import { area, field, form, input } from "../components/form.js"

// `save(replies)` stores them.
export function quickRepliesSection({ toasts }, { settings, disabled = false, save }) {
  const list = el("ol", { class: "quick-replies-list" })
  const rows = []
  const add = button(t("quick_reply.add"), { icon: "plus", look: "small", click: () => append({ label: "", text: "" }, true) })
  const update = () => {
    add.disabled = rows.length >= MOST_REPLIES
  }
  const append = (reply, isNew = false) => {
    const row = replyRow(reply, disabled, {
      onRemove: () => {
        rows.splice(rows.indexOf(row), 1)
        row.node.remove()
        update()
        add.focus()
      },
      onUp: () => {
        const index = rows.indexOf(row)
        if (index <= 0) return
        rows.splice(index, 1)
        rows.splice(index - 1, 0, row)
        rows[index].node.before(row.node)
        row.up.focus()
      },
    })
    rows.push(row)
    list.append(row.node)
    update()
    if (isNew) row.focus()
  }
  for (const reply of quickRepliesOf(settings)) append(reply)
  // The rows are saved with the form.
  const importSet = async () => {
    const file = await chooseFile("application/json,.json")
    if (!file) return
    const set = await readSet(file, MOST_REPLIES - rows.length)
    if (!set) return toasts.show(t("quick_reply.not_a_set"))
    for (const reply of set.replies) append(reply)
    const notes = [
      t("quick_reply.imported", { n: set.replies.length }),
      set.nLeftOut > 0 && t("quick_reply.imported_most", { most: MOST_REPLIES }),
      set.nShortened > 0 && t("quick_reply.shortened", { n: set.nShortened, most: LONGEST_TEXT }),
      set.nScripts > 0 && t("quick_reply.scripts", { n: set.nScripts }),
    ]
    toasts.show(notes.filter(Boolean).join(" "))
  }
  const importButton = button(t("quick_reply.import"), { look: "small", click: importSet })
  const actions = el("div", { class: "form__actions form__actions--start" }, add, importButton, submitButton(t("save")))
  const submit = async () => {
    await save(rows.map((it) => it.value()))
    toasts.show(t("saved"))
  }
  return el(
    "section",
    { class: "panel__section", "data-section": "quick-replies" },
    el("h2", {}, t("quick_reply.title")),
    el("p", { class: "field__hint" }, t("quick_reply.hint")),
    form({ submit, children: [list, !disabled && actions] }),
  )
}

async function readSet(file, most) {
  try {
    return readQuickReplySet(JSON.parse(await file.text()), most)
  } catch {
    return null
  }
}

function replyRow(reply, disabled, { onRemove, onUp }) {
  const label = input({ value: reply.label, maxlength: LONGEST_LABEL, autocomplete: "off", disabled })
  const text = area({ value: reply.text, maxlength: LONGEST_TEXT, rows: "2", disabled })
  const up = iconButton("up", t("quick_reply.up"), { look: "small", click: onUp })
  const remove = iconButton("trash", t("quick_reply.remove"), { look: "small", click: onRemove })
  const node = el(
    "li",
    { class: "quick-replies-list__reply" },
    field({ label: t("quick_reply.label"), control: label }).node,
    field({ label: t("quick_reply.text"), control: text }).node,
    !disabled && el("div", { class: "quick-replies-list__actions" }, up, remove),
  )
  return { node, up, focus: () => label.focus(), value: () => ({ ...reply, label: label.value, text: text.value }) }
}
