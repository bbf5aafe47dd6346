// Detects character cards by the file name and the first bytes.
import { beginsWith } from "../files/dropped_file.js"

const ENDINGS = ["png", "apng", "json", "yaml", "yml", "charx", "byaf", "jpg", "jpeg"]

export const CARD_FILES = ENDINGS.map((it) => `.${it}`).join(",")

const PNG = [0x89, 0x50, 0x4e, 0x47]
// Characters of text-generation-webui may be YAML. The server names the reason for which it refuses a
// module or a preset of Risu.
const NAMES = /\.(charx|byaf|ya?ml|risum|risup|risupreset)$/i
// Some tools write cards as a picture followed by an archive.
const PICTURES = /\.jpe?g$/i
const JPEG = [0xff, 0xd8]

export function looksLikeCard(file, head, json) {
  if (json !== null) return isCardDocument(json)
  return beginsWith(head, PNG) || NAMES.test(file.name) || (PICTURES.test(file.name) && beginsWith(head, JPEG))
}

// A card of any version has a name and a greeting or a description; a lorebook or a preset does not. So
// has a character of Agnai or text-generation-webui, which have other names for some fields.
function isCardDocument(json) {
  if (typeof json !== "object" || Array.isArray(json)) return false
  if (typeof json.spec === "string") return json.spec.startsWith("chara_card")
  if (typeof json.char_name === "string") return true
  const hasText = (key) => typeof json[key] === "string"
  if (json.kind === "character" || json.persona?.attributes) return hasText("name")
  if (hasText("context") || hasText("greeting")) return hasText("name") && !Array.isArray(json.messages)
  return hasText("name") && (hasText("first_mes") || (hasText("description") && hasText("personality")))
}
