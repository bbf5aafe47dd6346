// Detects character cards by the file name and the first bytes.
import { beginsWith } from "../files/dropped_file.js"

export const CARD_FILES = ["png", "apng", "json", "charx", "byaf", "jpg", "jpeg"].map((it) => `.${it}`).join(",")

const PNG = [0x89, 0x50, 0x4e, 0x47]
const ARCHIVES = /\.(charx|byaf)$/i
// Some tools write cards as a picture followed by an archive.
const PICTURES = /\.jpe?g$/i
const JPEG = [0xff, 0xd8]

export function looksLikeCard(file, head, json) {
  if (json !== null) return isCardDocument(json)
  return beginsWith(head, PNG) || ARCHIVES.test(file.name) || (PICTURES.test(file.name) && beginsWith(head, JPEG))
}

// A card of any version has a name and a greeting or a description; a lorebook or a preset does not.
function isCardDocument(json) {
  if (typeof json !== "object" || Array.isArray(json)) return false
  if (typeof json.spec === "string") return json.spec.startsWith("chara_card")
  if (typeof json.char_name === "string") return true
  const hasText = (key) => typeof json[key] === "string"
  return hasText("name") && (hasText("first_mes") || (hasText("description") && hasText("personality")))
}
