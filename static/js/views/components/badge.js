// The badge with the number of unread messages.
import { t } from "../../base/i18n.js"

const MANY = 99

export function countText(n) {
  return n > MANY ? t("sidebar.many") : String(n)
}

// Hides the badge if there is nothing unread.
export function showBadge(node, n) {
  node.hidden = n === 0
  node.textContent = countText(n)
  node.setAttribute("aria-label", t("sidebar.unread", { n }))
}
