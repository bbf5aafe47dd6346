// The preview of a preset file before it is stored: name, prompts, warnings and regex scripts.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { isPreset } from "../../models/presets/preset_file.js"
import { submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { form } from "../components/form.js"
import { openRefusal, warningList } from "../files/import_preview.js"
import { scriptPreview } from "../regex_scripts/script_list.js"
import { openPresetDialog } from "./preset_editor.js"

// Returns the importer for preset files. The preset is stored, then opened; it applies when it is
// selected.
export function presetImporter(parts) {
  const open = async (file) => {
    const preset = await importPreset(parts, file)
    if (preset) await openPresetDialog(parts, preset.id)
  }
  return { name: "preset", looksLike: (file, head, json) => isPreset(json), open }
}

// Shows a preview, and imports the preset if the user confirms. Resolves with the preset, or undefined.
export async function importPreset(parts, file) {
  let found
  try {
    found = await parts.presets.preview(file)
  } catch (error) {
    await openRefusal(file, error)
    return
  }
  const preset = await openDialog({
    title: t("preset.preview"),
    content: (close) => preview(parts, file, found, close),
  })
  if (preset) parts.toasts.show(t("preset.imported", { name: preset.name }))
  return preset
}

function preview(parts, file, found, close) {
  const { name, document: stated, scripts } = found
  const n = (stated.prompt_order ?? []).length
  return form({
    submit: async () => close((await parts.presets.importFile(file)).preset),
    children: [
      el("h3", { class: "card-preview__name" }, bdi(name)),
      n > 0 && el("p", { class: "field__hint" }, t("preset.n_prompts", { n })),
      warningList(sentencesOf(found)),
      scripts.length > 0 && scriptPreview(scripts),
      el("div", { class: "form__actions" }, submitButton(t("card.add_to_library"))),
    ].filter(Boolean),
  })
}
