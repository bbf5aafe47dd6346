// Detects lorebook files and previews them: name and number of entries.

// Accepts World Info of SillyTavern, `lorebook_v3`, and lorebooks of Agnai, Risu and NovelAI; not a
// card with a lorebook.
export function looksLikeLorebook(json) {
  if (json === null || typeof json !== "object" || Array.isArray(json)) return false
  if (String(json.spec ?? "").startsWith("lorebook")) return true
  if (String(json.spec ?? "").startsWith("chara_card")) return false
  const isForeign = json.kind === "memory" || json.type === "risu" || "lorebookVersion" in json
  return isForeign || isEntries(json.entries)
}

export function previewOf(json, fileName) {
  const book = String(json.spec ?? "").startsWith("lorebook") ? (json.data ?? {}) : json
  const entries = Object.values(book.entries ?? book.data ?? {})
  const stated = typeof book.name === "string" ? book.name.trim() : ""
  return { name: stated || fileName.replace(/\.[^.]*$/, ""), n: entries.length }
}

function isEntries(entries) {
  return typeof entries === "object" && entries !== null
}
