// The user's own presets.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button } from "../components/button.js"
import { openPresetDialog } from "../presets/preset_editor.js"
import { importPreset } from "../presets/preset_import.js"
import { card } from "./settings_profile.js"

export function presetsCard(parts) {
  const { presets, toasts } = parts
  const list = el("ul", { "aria-label": t("preset.library") })
  const act = (run) => run().catch((error) => toasts.error(error))
  const open = async (id) => {
    if (await openPresetDialog(parts, id)) await show()
  }
  const show = async () => {
    const own = await presets.listOwn()
    replace(
      list,
      own.map((it) => item(it, () => act(() => open(it.id)))),
      own.length === 0 && el("li", { class: "list__item soft" }, t("preset.none_yet")),
    )
  }
  const make = async () => {
    const made = await presets.create(t("preset.new_name"))
    await show()
    await open(made.id)
  }
  const importFile = async (file) => {
    const preset = await importPreset(parts, file)
    if (!preset) return
    await show()
    await open(preset.id)
  }
  // The input is hidden; the button opens it.
  const file = el("input", {
    type: "file",
    accept: ".json,application/json",
    hidden: true,
    "aria-label": t("preset.import"),
  })
  file.addEventListener("change", () => {
    const [chosen] = file.files
    file.value = ""
    if (chosen) act(() => importFile(chosen))
  })
  act(show)
  return card(
    t("settings.presets"),
    el("p", { class: "soft" }, t("preset.lead")),
    list,
    el(
      "div",
      { class: "member__buttons" },
      button(t("preset.new"), { look: "primary", icon: "plus", click: () => act(make) }),
      button(t("preset.import"), { click: () => file.click() }),
      file,
    ),
  )
}

function item({ name }, click) {
  return el(
    "li",
    { class: "list__item" },
    el("div", { class: "list__main" }, bdi(name, "truncate")),
    button(t("preset.edit"), {
      look: "small",
      "aria-label": t("models.act", { action: t("preset.edit"), name }),
      click,
    }),
  )
}
