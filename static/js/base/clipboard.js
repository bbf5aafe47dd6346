// Copying, also on pages served over plain http, where the modern way is not offered.
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
  // Behind an open dialog nothing can be selected.
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
