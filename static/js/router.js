// The addresses of the page: `/`, `/c/{conversation}` (with `#m-{message}` for a message),
// `/settings/{part}`, `/admin/{part}`. Links within the page do not reload it. `/join#{token}` is not a
// route: such a link loads the client again, before the user is known.
const ROUTES = [
  [/^\/$/, () => ({ name: "home" })],
  [/^\/c\/(\d+)$/, ([, id]) => ({ name: "conversation", conversationId: Number(id) })],
  [/^\/settings(?:\/(\w+))?$/, ([, part]) => ({ name: "settings", part: part ?? "profile" })],
  [/^\/admin(?:\/(\w+))?$/, ([, part]) => ({ name: "admin", part: part ?? "overview" })],
]

const MESSAGE = /^#m-(\d+)$/

export function parse(path, hash = "") {
  for (const [pattern, read] of ROUTES) {
    const match = pattern.exec(path)
    if (!match) continue
    const route = read(match)
    const message = route.name === "conversation" && MESSAGE.exec(hash)
    return message ? { ...route, messageId: Number(message[1]) } : route
  }
  return { name: "unknown" }
}

export const paths = {
  home: () => "/",
  conversation: (id) => `/c/${id}`,
  message: (conversationId, id) => `/c/${conversationId}#m-${id}`,
  settings: (part) => `/settings/${part}`,
  admin: (part) => `/admin/${part}`,
}

export default class Router {
  #onRoute
  #backStack
  #shown = null

  constructor(onRoute, backStack) {
    this.#onRoute = onRoute
    this.#backStack = backStack
  }

  // Lifecycle

  start() {
    window.addEventListener("popstate", this.#follow)
    document.addEventListener("click", this.#followLink)
    this.#show()
  }

  // Actions

  get current() {
    return parse(location.pathname, location.hash)
  }

  go(path, { replace = false } = {}) {
    this.#backStack.whenSettled((isLayerEntry) => {
      if (path !== here()) history[replace || isLayerEntry ? "replaceState" : "pushState"]({}, "", path)
      this.#show()
    })
  }

  // Private

  #show() {
    this.#shown = here()
    this.#onRoute(this.current)
  }

  // Ignores history entries of dialogs, which have the address of the current page.
  #follow = () => {
    if (here() !== this.#shown) this.#show()
  }

  #followLink = (event) => {
    const link = event.target.closest?.("a[href]")
    if (!link || link.target || link.origin !== location.origin || isOtherIntent(event)) return
    if (parse(link.pathname).name === "unknown") return
    event.preventDefault()
    this.go(link.pathname + link.hash)
  }
}

function here() {
  return location.pathname + location.hash
}

function isOtherIntent(event) {
  return (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
}
