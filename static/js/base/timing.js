// Back-off, throttling and debouncing.

const QUIET_MS = 2000

// Returns a delay in ms. The maximum doubles with every attempt; the delay is random below it, so that
// many browsers do not reconnect at the same moment.
export function backoff(attempt, random = Math.random, { baseMs = 500, capMs = 15_000 } = {}) {
  const ceiling = Math.min(capMs, baseMs * 2 ** attempt)
  return Math.round(ceiling / 2 + random() * (ceiling / 2))
}

// Calls `act` when the browser has loaded nothing for two seconds: then the first screen is most likely
// complete, also on a slow connection.
export function afterFirstScreen(act) {
  const loaded = performance.getEntriesByType("resource").map((it) => it.responseEnd)
  const quietAt = Math.max(0, ...loaded) + QUIET_MS
  if (performance.now() >= quietAt) return act()
  setTimeout(() => afterFirstScreen(act), quietAt - performance.now())
}

// Calls `act` at most once in `ms`: the first time immediately; the last call is never lost.
export function throttle(act, ms) {
  let timer = null
  let again = false
  const run = () => {
    timer = null
    if (!again) return
    again = false
    act()
    timer = setTimeout(run, ms)
  }
  return () => {
    again = true
    if (timer === null) run()
  }
}

// Calls `act` when there was no call for `ms`.
export function debounce(act, ms) {
  let timer = null
  return () => {
    clearTimeout(timer)
    timer = setTimeout(act, ms)
  }
}

// Calls `act` once in the next frame, independent of the number of calls.
export function oncePerFrame(act) {
  let handle = null
  return () => {
    handle ??= requestAnimationFrame(() => {
      handle = null
      act()
    })
  }
}
