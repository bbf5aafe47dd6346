// The preview of the next speaker.

// Returns the odds of those who may speak, the most likely first; equal ones keep their order.
export function likely({ odds }) {
  return odds
    .filter(({ probability }) => probability === null || probability > 0)
    .toSorted((a, b) => (b.probability ?? 0) - (a.probability ?? 0))
}
