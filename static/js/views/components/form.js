// Form fields with labels, and forms that show errors next to the field.
import { el } from "../../base/dom.js"
import { explain } from "./error_messages.js"

let n = 0

// `control` is an input, textarea or select; adds its label, hint and error message.
export function field({ label, hint = null, control }) {
  const id = `field-${n++}`
  control.id = id
  const error = el("p", { class: "field__error", id: `${id}-error`, hidden: true })
  control.setAttribute("aria-describedby", [hint && `${id}-hint`, `${id}-error`].filter(Boolean).join(" "))
  const node = el(
    "div",
    { class: "field" },
    el("label", { class: "field__label", for: id }, label),
    control,
    hint && el("p", { class: "field__hint", id: `${id}-hint` }, hint),
    error,
  )
  return { node, control, showError: (text) => showError(control, error, text) }
}

export function input(props = {}) {
  return el("input", { class: "input", type: "text", ...props })
}

export function area(props = {}) {
  return el("textarea", { class: "input input--area", rows: "3", ...props })
}

// `options` are `[value, label]`.
export function select(options, value) {
  return el(
    "select",
    { class: "input" },
    options.map(([key, label]) => el("option", { value: key, selected: key === value }, label)),
  )
}

export function check({ label, hint = null, checked = false, name = null }) {
  const control = el("input", { type: "checkbox", checked, name })
  const node = el(
    "label",
    { class: "check" },
    control,
    el("span", { class: "check__text" }, label, hint && el("span", { class: "field__hint" }, hint)),
  )
  return { node, control }
}

// Tracks whether the values of fields differ from the saved ones.
export function trackChanges(fields) {
  const read = () => Object.values(fields).map(({ control }) => control.value)
  let kept = read()
  return {
    isUnsaved: () => read().some((value, at) => value !== kept[at]),
    keep: () => {
      kept = read()
    },
  }
}

// `fields` are keyed by the names of the API; `submit()` may throw an ApiError.
export function form({ fields = {}, children, submit, onError = null }) {
  const problem = el("p", { class: "form__error", role: "alert", hidden: true })
  const node = el("form", { class: "form", novalidate: true }, children)
  // The last child is the row of buttons; the error is shown above it.
  node.lastElementChild.before(problem)
  node.addEventListener("submit", async (event) => {
    event.preventDefault()
    clear(fields, problem)
    // A disabled button loses the focus, which is restored afterwards.
    const focused = node.contains(document.activeElement) ? document.activeElement : null
    setBusy(node, true)
    try {
      await submit()
    } catch (error) {
      show(error, fields, problem)
      onError?.(error)
    } finally {
      setBusy(node, false)
      if (document.activeElement === document.body) focused?.focus()
    }
  })
  return node
}

function show(error, fields, problem) {
  const target = fields[error.param]
  if (target) {
    target.showError(explain(error))
    target.control.focus()
    return
  }
  problem.textContent = explain(error)
  problem.hidden = false
}

function clear(fields, problem) {
  problem.hidden = true
  for (const it of Object.values(fields)) it.showError("")
}

function setBusy(node, busy) {
  node.setAttribute("aria-busy", String(busy))
  for (const button of node.querySelectorAll("button[type=submit]")) button.disabled = busy
}

function showError(control, error, text) {
  error.textContent = text
  error.hidden = text === ""
  if (text === "") control.removeAttribute("aria-invalid")
  else control.setAttribute("aria-invalid", "true")
}
