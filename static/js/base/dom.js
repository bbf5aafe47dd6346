// Creates elements. Text from users becomes text nodes, never markup.
const SVG = "http://www.w3.org/2000/svg"

// `el("button", { class: "button", on: { click } }, "Save")`. A child may be a node, a text, a list
// or nothing. Attributes that are false or null are left out.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag)
  for (const [name, value] of Object.entries(props)) setProp(node, name, value)
  append(node, children)
  return node
}

export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child)
  }
  return node
}

export function replace(node, ...children) {
  node.replaceChildren()
  return append(node, children)
}

// Returns an icon of the sprite in index.html.
export function icon(name, className = "icon") {
  const svg = document.createElementNS(SVG, "svg")
  svg.setAttribute("class", className)
  svg.setAttribute("aria-hidden", "true")
  const use = document.createElementNS(SVG, "use")
  use.setAttribute("href", `#icon-${name}`)
  svg.append(use)
  return svg
}

// Returns a user's name, isolated from the direction of the surrounding text.
export function bdi(name, className = null) {
  return el("bdi", { class: className }, name)
}

// Orders the children of `parent` like `items`, one node for each key. A node that remains is not moved
// unless its position changes, so that focus and selection survive.
export function reconcile(parent, items, { key, create, update }) {
  const old = new Map([...parent.children].map((node) => [node.dataset.key, node]))
  let cursor = parent.firstElementChild
  for (const item of items) {
    const id = key(item)
    let node = old.get(id)
    old.delete(id)
    if (!node) {
      node = create(item)
      node.dataset.key = id
    }
    update(node, item)
    if (node === cursor) cursor = cursor.nextElementSibling
    else parent.insertBefore(node, cursor)
  }
  for (const node of old.values()) node.remove()
}

function setProp(node, name, value) {
  if (value === null || value === undefined || value === false) return
  if (name === "on") return Object.entries(value).forEach(([type, act]) => node.addEventListener(type, act))
  if (name === "dataset") return Object.assign(node.dataset, value)
  if (name === "value" || name === "checked" || name === "selected") node[name] = value
  else if (value === true) node.setAttribute(name, "")
  else node.setAttribute(name, value)
}
