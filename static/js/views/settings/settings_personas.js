// @ts-check
// The page of the user's personas: a list with faces, import and export.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { avatar } from "../components/avatar.js"
import { button } from "../components/button.js"
import { chooseFile, saveFile } from "../components/file_choice.js"
import { openPersonaDialog } from "../personas/persona_dialog.js"
import { card } from "./settings_profile.js"

export function personasCard(parts) {
  const { personas, store, toasts } = parts
  const list = el("ul", { class: "personas", "aria-label": t("settings.personas") })
  const report = el("ul", { class: "personas__report soft", "aria-live": "polite" })
  const act = (run) => run().catch((error) => toasts.error(error))
  const show = () => {
    const all = store.personas ?? []
    replace(
      list,
      all.map((it) => item(it, () => act(() => open(it)))),
      all.length === 0 && el("li", { class: "list__item soft" }, t("persona.none_yet")),
    )
  }
  const open = async (persona) => {
    await openPersonaDialog(parts, persona)
    show()
  }
  const importFile = async () => {
    const file = await chooseFile(".json,application/json,.zip,application/zip")
    if (!file) return
    const result = await personas.importFile(file)
    show()
    const lines = [t("persona.imported", { n: result.n_imported }), ...sentencesOf(result)]
    replace(
      report,
      lines.map((text) => el("li", {}, text)),
    )
  }
  act(async () => {
    await personas.reload()
    show()
  })
  return card(
    t("settings.personas"),
    el("p", { class: "soft" }, t("persona.lead")),
    list,
    el(
      "div",
      { class: "member__buttons" },
      button(t("persona.new"), { look: "primary", icon: "plus", click: () => act(() => open(null)) }),
      button(t("persona.import"), { click: () => act(importFile) }),
      button(t("persona.export"), { click: () => saveFile(personas.exportPath, "personas.json") }),
    ),
    report,
  )
}

function item({ name, title, description, avatar_url: url, is_default: isDefault }, click) {
  return el(
    "li",
    { class: "list__item" },
    avatar({ name, url }),
    el(
      "div",
      { class: "list__main" },
      bdi(name, "truncate"),
      title && el("p", { class: "truncate" }, title),
      el("p", { class: "soft truncate" }, description),
    ),
    isDefault && el("span", { class: "soft" }, t("persona.default")),
    button(t("persona.edit"), {
      look: "small",
      "aria-label": t("models.act", { action: t("persona.edit"), name }),
      click,
    }),
  )
}
