// Opens the search with Ctrl+K or ⌘K.
import { openSearch } from "../on_demand.js"

export function registerSearchShortcut(parts) {
  document.addEventListener("keydown", (event) => {
    const isIt = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)
    if (!isIt || event.altKey || event.shiftKey) return
    event.preventDefault()
    if (!document.querySelector("dialog[open]")) openSearch(parts)
  })
}
