// Documents as the server sends them, with only the relevant fields.
export function message({
  seq,
  id = seq + 100,
  rev = seq,
  content = `text ${seq}`,
  at = seq * 1000,
  author = 1,
  ...rest
}) {
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
  return {
    rev,
    snapshot: {
      messages,
      reset: false,
      state: "idle",
      round: null,
      queued_run: null,
      running_run: null,
      presence: [],
      stream: null,
      ...rest,
    },
  }
}

export class MemoryStorage {
  items = new Map()
  getItem(key) {
    return this.items.get(key) ?? null
  }
  setItem(key, value) {
    this.items.set(key, value)
  }
  removeItem(key) {
    this.items.delete(key)
  }
}

// Replaces the timers until the test ends; time passes by the returned `tick` only.
export function stopTimers(t) {
  const real = { setTimeout, clearTimeout, setInterval, clearInterval }
  const waiting = new Map()
  let now = 0
  let lastId = 0

  const wait =
    (repeats) =>
    (run, ms = 0) => {
      waiting.set(++lastId, { at: now + ms, every: repeats ? Math.max(ms, 1) : null, run })
      return lastId
    }
  const forget = (id) => {
    waiting.delete(id)
  }
  const nextUpTo = (end) =>
    [...waiting].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0]

  Object.assign(globalThis, {
    setTimeout: wait(false),
    clearTimeout: forget,
    setInterval: wait(true),
    clearInterval: forget,
  })
  t.after(() => Object.assign(globalThis, real))

  return function tick(ms) {
    const end = now + ms
    for (let next = nextUpTo(end); next; next = nextUpTo(end)) {
      const [id, timer] = next
      now = timer.at
      if (timer.every) timer.at += timer.every
      else waiting.delete(id)
      timer.run()
    }
    now = end
  }
}
