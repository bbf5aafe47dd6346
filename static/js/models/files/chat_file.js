// Detects chat files by the name and the content. Only the server reads them.

// Whether a file may be a chat: by its name and its first line, or by its content if it is JSON.
export function looksLikeChat({ name }, head = "", json = null) {
  if (/\.jsonl$/i.test(name)) return true
  if (isChatOfOtherProgram(json)) return true
  const line = readLine(head.split("\n", 1)[0])
  return line !== null && ("chat_metadata" in line || ("mes" in line && "is_user" in line))
}

// Whether a JSON document is a chat of Agnai, KoboldAI, text-generation-webui, Character.AI or Risu.
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

function readLine(text) {
  try {
    const line = JSON.parse(text)
    return line !== null && typeof line === "object" && !Array.isArray(line) ? line : null
  } catch {
    return null
  }
}
