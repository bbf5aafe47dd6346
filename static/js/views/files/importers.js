// The importers of the files that a user can drop on the page, in the order in which they are asked.
import { cardImporter } from "../characters/card_preview.js"
import { lorebookImporter } from "../lorebooks/lorebook_import.js"
import { presetImporter } from "../presets/preset_import.js"
import { chatImporters } from "./import_dialog.js"

export function importers(parts) {
  return [presetImporter(parts), cardImporter(parts), ...chatImporters(parts), lorebookImporter(parts)]
}
