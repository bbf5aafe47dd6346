// Documents as the server sends them, with only what a test cares about said.
export function message({ seq, id = seq + 100, rev = seq, content = `text ${seq}`, at = seq * 1000, author = 1, ...rest }) {
  return {
    id,
    seq,
    rev,
    content,
    html: `<p>${content}</p>`,
    visibility: "normal",
    space_membership_id: author,
    conversation_run_id: null,
    client_id: null,
    created_at: new Date(at).toISOString(),
    ...rest,
  }
}

export function snapshot({ messages = [], rev = 0, ...rest } = {}) {
  return { rev, snapshot: { messages, reset: false, state: "idle", round: null, queued_run: null, running_run: null, presence: [], stream: null, ...rest } }
}

export class MemoryStorage {
  items = new Map()
  getItem(key) { return this.items.get(key) ?? null }
  setItem(key, value) { this.items.set(key, value) }
  removeItem(key) { this.items.delete(key) }
}
