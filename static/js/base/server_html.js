// The only place where HTML enters the page: `message.html`, rendered from Markdown and sanitized by
// our server. No other text may be inserted as HTML.
import { icon } from "./dom.js"
import { t } from "./i18n.js"

export function showServerHtml(node, html) {
  const template = document.createElement("template")
  template.innerHTML = html
  // Loading an external image reveals the reader's address: it is a link that the reader may open.
  for (const link of template.content.querySelectorAll("a.external-image")) {
    link.title = t("message.external_image")
    link.prepend(icon("image"))
  }
  for (const link of template.content.querySelectorAll("a[href]")) {
    link.target = "_blank"
    link.rel = "noopener noreferrer nofollow"
  }
  node.replaceChildren(template.content)
}
