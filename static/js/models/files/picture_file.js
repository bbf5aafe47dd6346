// Recognizes pictures, and those of them that are character cards.
import { beginsWith } from "./dropped_file.js"

export const PICTURE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"]

const PNG = [0x89, 0x50, 0x4e, 0x47]
const PNG_SIGNATURE_BYTES = 8
const TEXT_CHUNKS = ["tEXt", "zTXt", "iTXt"]
const CARD_KEYWORDS = ["chara", "ccv3"]
// The end of a zip archive is within its last bytes.
const ARCHIVE_END_BYTES = 64 * 1024
const ARCHIVE_END = [0x50, 0x4b, 0x05, 0x06]

export function isPicture(file) {
  return PICTURE_TYPES.includes(file.type)
}

// Whether a picture contains a character card.
export async function isCardPicture(file) {
  const bytes = new Uint8Array(await file.arrayBuffer())
  return beginsWith(bytes, PNG) ? hasCardChunk(bytes) : hasArchive(bytes)
}

function hasCardChunk(bytes) {
  const view = new DataView(bytes.buffer)
  let at = PNG_SIGNATURE_BYTES
  while (at + 12 <= bytes.length) {
    const length = view.getUint32(at)
    const kind = String.fromCharCode(...bytes.subarray(at + 4, at + 8))
    const keyword = String.fromCharCode(...bytes.subarray(at + 8, at + 13))
    const isCard = CARD_KEYWORDS.some((word) => keyword.startsWith(word))
    if (TEXT_CHUNKS.includes(kind) && isCard) return true
    at += 12 + length
  }
  return false
}

// Some tools write cards as a picture followed by an archive.
function hasArchive(bytes) {
  const from = Math.max(0, bytes.length - ARCHIVE_END_BYTES)
  for (let at = from; at + ARCHIVE_END.length <= bytes.length; at += 1)
    if (ARCHIVE_END.every((byte, offset) => bytes[at + offset] === byte)) return true
  return false
}
