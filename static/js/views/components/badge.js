// How much waits to be read, in as few signs as fit.
import { t } from "../../base/i18n.js"

const MANY = 99

export function countText(n) {
  return n > MANY ? t("sidebar.many") : String(n)
}

// Nothing unread is nothing to see.
export function showBadge(node, n) {
  node.hidden = n === 0
  node.textContent = countText(n)
  node.setAttribute("aria-label", t("sidebar.unread", { n }))
}
