// Which memories are pruned: reads the fields of the dialog.
export const PRUNE_NUMBERS = {
  older_than_days: { usual: 90, least: 0, most: 36500, step: 1 },
  keep: { usual: null, least: 0, most: undefined, step: 1 },
  keep_importance: { usual: 0.9, least: 0, most: 1, step: 0.05 },
}

// Returns the rules as a body of the API, or null if a field has an invalid value. An empty field sets no
// limit; for the importance it means the default of the server.
export function pruneRules(texts) {
  const stated = Object.entries(texts).filter(([, text]) => text.trim() !== "")
  const numbers = stated.map(([name, text]) => [name, Number(text)])
  const isValid = ([name, number]) => {
    const { least, most = Number.MAX_SAFE_INTEGER, step } = PRUNE_NUMBERS[name]
    return number >= least && number <= most && (step < 1 || Number.isInteger(number))
  }
  return numbers.every(isValid) ? Object.fromEntries(numbers) : null
}
