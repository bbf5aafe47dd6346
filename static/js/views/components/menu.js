// A popup menu of a button: arrow keys move, Esc and a click elsewhere close it, focus returns to the
// button.
import { el, icon } from "../../base/dom.js"

// `items()` returns `{ label, icon, face, run, danger }`, with `face` a node in place of the icon, and is called each time the menu opens.
export function menuButton({
  label,
  icon: name = "more",
  className = "icon-button icon-button--small",
  items,
}) {
  const button = el(
    "button",
    {
      class: className,
      type: "button",
      "aria-label": label,
      "aria-haspopup": "menu",
      "aria-expanded": "false",
    },
    icon(name),
  )
  button.addEventListener("click", () => openMenu(button, items()))
  return button
}

export function openMenu(button, items) {
  const menu = el("div", { class: "menu", role: "menu", popover: "auto" })
  for (const item of items) menu.append(menuItem(item, () => menu.hidePopover()))
  menu.addEventListener("keydown", (event) => moveInMenu(menu, event))
  menu.addEventListener("toggle", ({ newState }) => {
    button.setAttribute("aria-expanded", String(newState === "open"))
    if (newState === "open") return
    if (menu.contains(document.activeElement) || document.activeElement === document.body) button.focus()
    menu.remove()
  })
  button.after(menu)
  menu.showPopover()
  place(menu, button)
  menu.firstElementChild?.focus()
}

function menuItem({ label, icon: name, face = null, run, danger = false }, close) {
  const click = () => {
    close()
    run()
  }
  return el(
    "button",
    {
      class: `menu__item ${danger ? "menu__item--danger" : ""}`,
      type: "button",
      role: "menuitem",
      tabindex: "-1",
      on: { click },
    },
    face ?? (name && icon(name)),
    label,
  )
}

function moveInMenu(menu, event) {
  const items = [...menu.children]
  const at = items.indexOf(document.activeElement)
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key]
  if (event.key === "Tab") menu.hidePopover()
  if (to === undefined) return
  event.preventDefault()
  items[(to + items.length) % items.length].focus()
}

// Places the menu below the button, or above it if there is not enough space, and within the viewport.
function place(menu, button) {
  const at = button.getBoundingClientRect()
  const size = menu.getBoundingClientRect()
  const below = at.bottom + 4
  const top = below + size.height > innerHeight - 8 ? Math.max(8, at.top - size.height - 4) : below
  menu.style.top = `${top}px`
  menu.style.left = `${Math.max(8, Math.min(at.right - size.width, innerWidth - size.width - 8))}px`
}
