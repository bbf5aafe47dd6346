// Reads a list of aliases, separated by commas, without duplicates.
export function readAliases(text) {
  const names = text.split(/[,，、]/).map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ""))]
}
