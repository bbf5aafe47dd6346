// Reads a chat file for a preview before it is sent: the number of messages and their authors. The file
// is read line by line, as on the server; lines without a message are not counted.
const MAX_LINE = 2 * 1024 * 1024
const MAX_NAME = 100
const MAX_NAMES = 200
// Fields of which a line of a chat has at least one.
const LINE_FIELDS = ["mes", "swipes", "chat_metadata", "user_name", "character_name", "create_date"]
// Characters that change the direction of the text.
const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

// Whether a file may be a chat: by its name and its first line, or by its content if it is JSON.
export function looksLikeChat({ name }, head = "", json = null) {
  if (/\.jsonl$/i.test(name)) return true
  if (isChatOfOtherProgram(json)) return true
  const line = readLine(head.split("\n", 1)[0])
  return line !== null && ("chat_metadata" in line || ("mes" in line && "is_user" in line))
}

// Whether a JSON document is a chat of Agnai, KoboldAI, text-generation-webui, Character.AI or Risu, which
// only the server reads.
export function isChatOfOtherProgram(json) {
  if (json === null || typeof json !== "object") return false
  const isHistory = (it) => Array.isArray(it?.msgs) || Array.isArray(it?.turns)
  if (Array.isArray(json)) return json.some(isHistory)
  const has = (...keys) => keys.every((key) => Array.isArray(json[key]))
  return (
    json.type === "risuChat" ||
    json.type === "risuAllChats" ||
    (has("actions") && ("gamestarted" in json || "prompt" in json || "worldinfo" in json)) ||
    has("internal", "visible") ||
    has("data", "data_visible") ||
    has("histories") ||
    Array.isArray(json.histories?.histories) ||
    isHistory(json) ||
    (has("messages") && json.messages.some((it) => typeof it?.msg === "string"))
  )
}

// Whether a JSON document is no line of a chat, so that only the server can tell what it is.
export function isDocument(json) {
  return json !== null && (Array.isArray(json) || !LINE_FIELDS.some((key) => key in json))
}

// Resolves to `{ n, names: [{ name, isUser, n }] }`, the most frequent names first.
export async function preview(file) {
  const counts = new Map()
  const header = {}
  let n = 0
  await eachLine(file, (text) => {
    const line = readLine(text)
    if (line === null) return
    if (!("mes" in line || "swipes" in line)) return Object.assign(header, namesOf(line))
    n += 1
    const isUser = line.is_user === true
    const name = shownName(line.name) ?? header[isUser ? "user" : "character"] ?? (isUser ? "User" : "Character")
    const key = `${isUser} ${name}`
    const known = counts.get(key)
    if (known) known.n += 1
    else if (counts.size < MAX_NAMES) counts.set(key, { name, isUser, n: 1 })
  })
  return { n, names: [...counts.values()].sort((a, b) => b.n - a.n) }
}

// Returns the default membership for each name: its id, or "new". The server uses the same rules.
export function matchMembers(names, roster, myMembershipId) {
  let me = myMembershipId
  return names.map(({ name, isUser }) => {
    const kind = isUser ? "human" : "character"
    const normalizedName = normalized(name)
    const fits = roster
      .filter(({ display_name: own, aliases }) => [own, ...aliases].some((it) => normalized(it) === normalizedName))
      .sort((a, b) => rank(a, kind) - rank(b, kind))
    if (fits.length > 0) return fits[0].id
    if (!isUser || me === null) return "new"
    const mine = me
    me = null
    return mine
  })
}

function rank(membership, kind) {
  return (membership.kind === kind ? 0 : 2) + (membership.status === "active" ? 0 : 1)
}

function normalized(name) {
  return name.trim().normalize("NFKC").toLowerCase()
}

function namesOf(line) {
  const parse = (name) => {
    const shown = shownName(name)
    return shown === "unused" ? undefined : (shown ?? undefined)
  }
  return { user: parse(line.user_name), character: parse(line.character_name) }
}

function shownName(name) {
  if (typeof name !== "string") return null
  const words = name.replace(DIRECTION_MARKS, "").split(/[\s\p{Cc}]+/u).filter(Boolean)
  return [...words.join(" ")].slice(0, MAX_NAME).join("") || null
}

function readLine(text) {
  try {
    const line = JSON.parse(text)
    return line !== null && typeof line === "object" && !Array.isArray(line) ? line : null
  } catch {
    return null
  }
}

async function eachLine(file, onLine) {
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { value, done } = await reader.read()
    const lines = (rest + (value ?? "")).split("\n")
    rest = done ? "" : lines.pop()
    for (const line of lines) if (line.trim()) onLine(line)
    // A line longer than a message is cut; its rest is read as an invalid line.
    if (rest.length > MAX_LINE) rest = "x"
    if (done) return
  }
}
