// The browser's file dialogs: chooses a file to read, and saves a download.
import { el } from "../../base/dom.js"

// Opens the browser's file dialog. Resolves to null if it is canceled.
export function chooseFile(accept) {
  const control = el("input", { type: "file", accept, hidden: true })
  document.body.append(control)
  return new Promise((resolve) => {
    const end = () => {
      control.remove()
      resolve(control.files[0] ?? null)
    }
    control.addEventListener("change", end)
    control.addEventListener("cancel", end)
    control.click()
  })
}

// Starts a download of the browser.
export function saveFile(href, name = "") {
  const link = el("a", { href, download: name })
  document.body.append(link)
  link.click()
  link.remove()
}
