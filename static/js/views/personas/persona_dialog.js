// @ts-check
// The dialog that creates or changes a persona: name, title, description with its position, picture,
// default.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { AT_DEPTH, POSITIONS, ROLES, formValues, readForm } from "../../models/personas/personas.js"
import { avatar } from "../components/avatar.js"
import { button } from "../components/button.js"
import { confirm, openDialog } from "../components/dialog.js"
import { chooseFile } from "../components/file_choice.js"
import { area, check, field, form, input, select, trackChanges } from "../components/form.js"

const PICTURES = "image/png,image/jpeg,image/webp,image/gif"

// `persona` null: a new one. Resolves when the dialog is closed.
export function openPersonaDialog(parts, persona) {
  const fields = fieldsOf(formValues(persona))
  const changes = trackChanges(fields)
  return openDialog({
    title: persona ? persona.name : t("persona.new"),
    isUnsaved: () => changes.isUnsaved(),
    content: (close) => content(parts, persona, fields, changes, close),
  })
}

function fieldsOf(values) {
  const positions = POSITIONS.map((key) => [key, t(`persona_position.${key}`)])
  const roles = ROLES.map((key) => [key, t(`persona_role.${key}`)])
  const fields = {
    name: field({
      label: t("persona.name"),
      control: input({ value: values.name, maxlength: "100", required: true, autofocus: true }),
    }),
    title: field({
      label: t("persona.title"),
      hint: t("persona.title_hint"),
      control: input({ name: "title", value: values.title, maxlength: "100", autocomplete: "off" }),
    }),
    description: field({
      label: t("persona.description"),
      hint: t("persona.description_hint"),
      control: area({ value: values.description, rows: "8" }),
    }),
    position: field({ label: t("persona.position"), control: select(positions, values.position) }),
    depth: field({
      label: t("persona.depth"),
      hint: t("persona.depth_hint"),
      control: input({ type: "number", name: "depth", value: values.depth, min: "0", max: "10000", step: "1" }),
    }),
    role: field({ label: t("persona.role"), control: select(roles, values.role) }),
  }
  // Hides the fields that apply only among the messages.
  const adapt = () => {
    for (const { node } of [fields.depth, fields.role]) node.hidden = fields.position.control.value !== AT_DEPTH
  }
  for (const name of ["position", "role"]) fields[name].control.name = name
  fields.position.control.addEventListener("change", adapt)
  adapt()
  return fields
}

function content(parts, persona, fields, changes, close) {
  const { personas } = parts
  const isDefault = check({
    label: t("persona.is_default"),
    hint: t("persona.is_default_hint"),
    checked: persona?.is_default ?? false,
  })
  const picture = pictureChoice(parts, persona)
  const submit = async () => {
    const values = Object.entries(fields).map(([name, { control }]) => [name, control.value])
    const body = { ...readForm(Object.fromEntries(values)), is_default: isDefault.control.checked }
    if (persona) await personas.change(persona.id, body)
    else {
      const made = await personas.create(body)
      if (picture.file) await personas.setPicture(made.id, picture.file)
    }
    changes.keep()
    close()
  }
  const remove = async () => {
    const text = t("persona.delete_text")
    const isSure = await confirm({ title: t("persona.delete_title", { name: persona.name }), text, action: t("delete") })
    if (!isSure) return
    await personas.remove(persona.id)
    changes.keep()
    close()
  }
  return form({
    fields,
    submit,
    children: [
      picture.node,
      Object.values(fields).map(({ node }) => node),
      isDefault.node,
      el(
        "div",
        { class: "form__actions" },
        persona &&
          button(t("delete"), {
            look: "quiet",
            click: () => remove().catch((error) => parts.toasts.error(error)),
          }),
        button(t("save"), { look: "primary", type: "submit" }),
      ),
    ],
  })
}

// A picture of an existing persona is stored at once; that of a new one with the persona.
function pictureChoice({ personas, toasts }, persona) {
  const face = el("div", { class: "persona__face" })
  const choice = {
    file: null,
    node: el(
      "div",
      { class: "persona__picture" },
      face,
      button(t("persona.choose_picture"), { look: "small", click: () => act(choose) }),
      persona && button(t("persona.remove_picture"), { look: "small quiet", click: () => act(() => save(null)) }),
    ),
  }
  const show = (url) => replace(face, avatar({ name: persona?.name ?? "", url, size: "large" }))
  const act = (run) => run().catch((error) => toasts.error(error))
  const save = async (file) => show((await personas.setPicture(persona.id, file)).avatar_url)
  const choose = async () => {
    const file = await chooseFile(PICTURES)
    if (!file) return
    if (persona) return save(file)
    choice.file = file
    replace(face, el("p", { class: "soft" }, file.name))
  }
  show(persona?.avatar_url ?? null)
  return choice
}
