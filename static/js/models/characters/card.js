// Reads the main fields of a pasted character card (V1, V2 or V3 JSON) for a preview. The server
// validates the whole card.

// Returns `{ card, name, description, greeting }` or `{ problem }`: "json", "card" or "name".
export function readCard(text) {
  let card
  try {
    card = JSON.parse(text)
  } catch {
    return { problem: "json" }
  }
  if (typeof card !== "object" || card === null || Array.isArray(card)) return { problem: "card" }
  const data = typeof card.data === "object" && card.data !== null ? card.data : card
  const name = textOf(data.name)
  if (name === "") return { problem: "name" }
  return {
    card,
    name,
    description: textOf(data.description) || textOf(data.personality),
    greeting: textOf(data.first_mes),
  }
}

function textOf(value) {
  return typeof value === "string" ? value.trim() : ""
}
