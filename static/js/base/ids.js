// Random ids and passwords; `crypto.randomUUID` is missing on pages served over plain http from another machine.
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
}

// Without characters that are easily confused when they are read aloud or copied by hand.
const SIGNS = "abcdefghijkmnpqrstuvwxyzACDEFGHJKLMNPQRTUVWXY34679"

export function randomPassword(length = 16) {
  const signs = []
  while (signs.length < length) {
    const [byte] = crypto.getRandomValues(new Uint8Array(1))
    // Rejects larger bytes, which would make the first characters more likely than the others.
    if (byte < 256 - (256 % SIGNS.length)) signs.push(SIGNS[byte % SIGNS.length])
  }
  return signs.join("")
}
