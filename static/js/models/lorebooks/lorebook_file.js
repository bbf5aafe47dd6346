// A file that may be a lorebook, looked at before it is brought: what it is called and how much is in it.

// Worlds of SillyTavern, `lorebook_v3`, and the books of Agnai, Risu and NovelAI; not a card with a book.
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
