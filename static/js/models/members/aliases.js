// Other names, as one writes them into a field: parted by commas, each once.
export function readAliases(text) {
  const names = text.split(/[,，、]/).map((name) => name.trim())
  return [...new Set(names.filter((name) => name !== ""))]
}
