// What a file that somebody brings is, as far as its name and its first bytes tell. Whoever takes it
// reads it again, and whole.

// More is not read to find out what it is.
const HEAD_BYTES = 64 * 1024
// A JSON file is read whole to tell a card from a world; larger ones belong to nobody.
const MAX_JSON_BYTES = 5 * 1024 * 1024

// Answers `{ head, json }`: the first bytes, and what the file says if it is one JSON document.
export async function inspectFile(file) {
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer())
  return { head, json: file.size <= MAX_JSON_BYTES && beginsAsJson(head) ? parsed(await file.text()) : null }
}

// `importers` are `{ name, looksLike(file, head, json), open(file, json) }`: the first that knows it.
export function importerFor(importers, file, { head, json }) {
  return importers.find((it) => it.looksLike(file, head, json)) ?? null
}

// Does a file begin with these bytes?
export function beginsWith(head, bytes) {
  return bytes.every((byte, at) => head[at] === byte)
}

function beginsAsJson(head) {
  const text = new TextDecoder().decode(head.slice(0, 64)).replace(/^\uFEFF/, "").trimStart()
  return text.startsWith("{") || text.startsWith("[")
}

function parsed(text) {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""))
  } catch {
    return null
  }
}
