// Copies text, also on pages served over plain http, where the Clipboard API is not available.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

function copyBySelection(text) {
  const field = document.createElement("textarea")
  field.value = text
  field.className = "visually-hidden"
  const focused = document.activeElement
  // Nothing outside of an open modal dialog can be selected.
  const place = focused?.closest?.("dialog") ?? document.body
  place.append(field)
  field.select()
  try {
    return document.execCommand("copy")
  } finally {
    field.remove()
    focused?.focus?.()
  }
}
