// The one place where HTML enters the page: `message.html`, rendered from Markdown and sanitized by
// our own server. No other text may come this way, whatever it looks like.
import { icon } from "./dom.js"
import { t } from "./i18n.js"

export function showServerHtml(node, html) {
  const template = document.createElement("template")
  template.innerHTML = html
  // Who shows a picture learns who looks at it: it is a link, until somebody follows it.
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
