// The state of the invite links of a space.
const HOUR_MS = 60 * 60 * 1000

// Returns "active", "used_up" or "expired".
export function stateOf({ max_uses: most, uses, expires_at: until }, now) {
  if (until && Date.parse(until) <= now) return "expired"
  return most !== null && uses >= most ? "used_up" : "active"
}

// Returns the options for another link of the same kind.
export function renewalOf({ role, max_uses: most, created_at: from, expires_at: until }) {
  return { role, maxUses: most, hours: until ? (Date.parse(until) - Date.parse(from)) / HOUR_MS : null }
}
