// Adds a character: from a short form, from a card as JSON or a file, or from the user's library.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { CARD_FILES } from "../../models/characters/card_file.js"
import { readCard } from "../../models/characters/card.js"
import { avatar } from "../components/avatar.js"
import { button, iconButton, submitButton } from "../components/button.js"
import { openCardEditor } from "./card_editor.js"
import { openDialog } from "../components/dialog.js"
import { area, field, form, input, trackChanges } from "../components/form.js"

const WAYS = { write: writeForm, paste: pasteForm, library: libraryList }

export function openCharacterDialog(parts, spaceId) {
  let typed
  return openDialog({
    title: t("member.add"),
    isUnsaved: () => typed.isUnsaved(),
    content: (close) => {
      const body = el("div", {})
      const choices = el("div", { class: "choices", role: "group", "aria-label": t("character.ways") })
      const show = (name) => {
        for (const button of choices.children)
          button.setAttribute("aria-pressed", String(button.dataset.way === name))
        replace(body, WAYS[name](parts, spaceId, close))
        typed = trackChanges([...body.querySelectorAll("input, textarea")].map((control) => ({ control })))
        body.querySelector("input, textarea")?.focus()
      }
      for (const name of Object.keys(WAYS))
        choices.append(
          el(
            "button",
            { class: "choice", type: "button", "data-way": name, on: { click: () => show(name) } },
            t(`character.${name}`),
          ),
        )
      queueMicrotask(() => show("write"))
      return [choices, body]
    },
  })
}

function writeForm(parts, spaceId, close) {
  const name = field({
    label: t("character.name"),
    control: input({ name: "name", maxlength: "100", autocomplete: "off" }),
  })
  const description = field({
    label: t("character.description"),
    hint: t("character.description_hint"),
    control: area({ name: "description" }),
  })
  const greeting = field({
    label: t("character.greeting"),
    hint: t("character.greeting_hint"),
    control: area({ name: "first_mes" }),
  })
  const submit = async () => {
    if (name.control.value.trim() === "") return name.showError(t("field.needed"))
    await add(parts, spaceId, {
      name: name.control.value.trim(),
      description: description.control.value.trim(),
      first_mes: greeting.control.value.trim(),
    })
    close(true)
  }
  return form({
    fields: { name, description, first_mes: greeting },
    submit,
    children: [name.node, description.node, greeting.node, buttons()],
  })
}

function pasteForm(parts, spaceId, close) {
  const json = field({
    label: t("character.json"),
    hint: t("character.json_hint"),
    control: area({ name: "card", rows: "5", spellcheck: "false", class: "input input--area input--code" }),
  })
  const preview = el("div", { "aria-live": "polite" })
  json.control.addEventListener("input", () =>
    replace(preview, json.control.value.trim() === "" ? null : previewOf(readCard(json.control.value))),
  )
  const submit = async () => {
    const found = readCard(json.control.value)
    if (found.problem) return json.showError(t(`character.problem_${found.problem}`))
    await add(parts, spaceId, { card: found.card })
    close(true)
  }
  // A file opens its own preview, which shows its picture and its lore too.
  const choose = button(t("card.choose"), {
    icon: "image",
    "data-act": "choose_file",
    click: () => {
      parts.fileDrop.choose({ accept: CARD_FILES })
      close()
    },
  })
  const hint = el("p", { class: "field__hint" }, t("card.choose_hint"))
  return form({
    fields: { card: json },
    submit,
    children: [el("div", { class: "field" }, choose, hint), json.node, preview, buttons()],
  })
}

function previewOf({ problem, name, description, greeting }) {
  if (problem)
    return el("p", { class: "outcome outcome--bad" }, icon("alert"), t(`character.problem_${problem}`))
  return el(
    "section",
    { class: "preview", "aria-label": t("character.preview") },
    avatar({ name }),
    el(
      "div",
      { class: "grow" },
      el("h3", {}, bdi(name)),
      el("p", { class: "preview__text small" }, greeting || description || t("character.no_greeting")),
    ),
  )
}

function libraryList(parts, spaceId, close) {
  const list = el("ul", { "aria-busy": "true" }, el("li", { class: "soft" }, t("loading")))
  parts.members
    .library(spaceId)
    .then((characters) => {
      list.removeAttribute("aria-busy")
      if (characters.length === 0)
        return replace(list, el("li", { class: "panel__empty" }, t("character.library_empty")))
      return replace(
        list,
        characters.map((character) => libraryItem(parts, spaceId, character, close)),
      )
    })
    .catch((error) => parts.toasts.error(error))
  return list
}

function libraryItem(parts, spaceId, character, close) {
  const click = async ({ currentTarget }) => {
    currentTarget.disabled = true
    try {
      await parts.members.add(spaceId, character.id)
      close(true)
    } catch (error) {
      currentTarget.disabled = false
      parts.toasts.error(error)
    }
  }
  return el(
    "li",
    { class: "list__item" },
    avatar({ name: character.name, url: character.avatar_url }),
    el("span", { class: "list__main truncate" }, bdi(character.name)),
    iconButton("edit", t("card.edit_title", { name: character.name }), {
      look: "small",
      click: () => openCardEditor(parts, character.id),
    }),
    button(t("add"), { look: "small", "aria-label": t("character.add_named", { name: character.name }), click }),
  )
}

function add(parts, spaceId, description) {
  return parts.members.addNew(spaceId, description)
}

function buttons() {
  return el("div", { class: "form__actions" }, submitButton(t("character.add")))
}
