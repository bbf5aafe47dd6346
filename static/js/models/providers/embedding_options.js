// The options of a provider for embeddings: reads the fields of the dialog and writes them into the
// settings.
export const EMBEDDING_NUMBERS = {
  embedding_dimensions: { least: 1, most: 16384, isWhole: true },
  embedding_timeout_s: { least: 0, most: 600, isWhole: false },
  embedding_max_retries: { least: 0, most: 10, isWhole: true },
}
const NAMES = ["embedding_model", ...Object.keys(EMBEDDING_NUMBERS)]

// Returns the texts of the fields, and whether the cache is on; a missing option is empty.
export function readEmbeddingOptions(settings) {
  const texts = NAMES.map((name) => [name, String(settings?.[name] ?? "")])
  return { ...Object.fromEntries(texts), embedding_cache: settings?.embedding_cache ?? true }
}

// Returns the names of the numbers that are not allowed.
export function invalidEmbeddingNumbers(texts) {
  return Object.keys(EMBEDDING_NUMBERS).filter((name) => {
    const { least, most, isWhole } = EMBEDDING_NUMBERS[name]
    const text = texts[name].trim()
    const number = Number(text)
    return text !== "" && !(number >= least && number <= most && (!isWhole || Number.isInteger(number)))
  })
}

// Returns the settings with these options. An empty field means the default and is not stored; 0 is a
// value. Other settings are kept.
export function withEmbeddingOptions(settings, { embedding_cache: isCached, ...texts }) {
  const others = Object.entries(settings ?? {}).filter(([name]) => ![...NAMES, "embedding_cache"].includes(name))
  const stated = NAMES.map((name) => [name, texts[name].trim()]).filter(([, text]) => text !== "")
  const values = stated.map(([name, text]) => [name, name in EMBEDDING_NUMBERS ? Number(text) : text])
  return Object.fromEntries([...others, ...values, ...(isCached ? [] : [["embedding_cache", false]])])
}
