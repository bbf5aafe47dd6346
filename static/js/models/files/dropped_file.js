// Determines the kind of a file by its name and its first bytes. The importer reads the whole file.

// The number of bytes that are inspected.
const HEAD_BYTES = 64 * 1024
// JSON files up to this size are parsed to determine their kind; larger ones are not accepted.
const MAX_JSON_BYTES = 5 * 1024 * 1024

// Returns `{ head, json }`: the first bytes, and the content if it is a JSON document.
export async function inspectFile(file) {
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer())
  return { head, json: file.size <= MAX_JSON_BYTES && beginsAsJson(head) ? parsed(await file.text()) : null }
}

// Returns the first importer that accepts the file. `importers` are `{ name, looksLike(file, head,
// json), open(file, json) }`.
export function importerFor(importers, file, { head, json }) {
  return importers.find((it) => it.looksLike(file, head, json)) ?? null
}

// Whether a file begins with these bytes.
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
