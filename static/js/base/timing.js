// Waiting: how long to wait before the next try, and doing things less often than asked.

// The longest wait doubles with every try; the wait itself is drawn below it, so that a hundred
// browsers do not come back in the same instant.
export function backoff(attempt, random = Math.random, { baseMs = 500, capMs = 15_000 } = {}) {
  const ceiling = Math.min(capMs, baseMs * 2 ** attempt)
  return Math.round(ceiling / 2 + random() * (ceiling / 2))
}

// Calls `act` at most once in `ms`, the first time at once, the last time never lost.
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

// Calls `act` once nothing was asked for `ms` long.
export function debounce(act, ms) {
  let timer = null
  return () => {
    clearTimeout(timer)
    timer = setTimeout(act, ms)
  }
}

// Calls `act` once in the next frame, however often it was asked for.
export function oncePerFrame(act) {
  let handle = null
  return () => {
    handle ??= requestAnimationFrame(() => {
      handle = null
      act()
    })
  }
}
