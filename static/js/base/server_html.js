// The one place where HTML enters the page: `message.html`, rendered from Markdown and sanitized by
// our own server. No other text may come this way, whatever it looks like.
export function showServerHtml(node, html) {
  const template = document.createElement("template")
  template.innerHTML = html
  for (const link of template.content.querySelectorAll("a[href]")) {
    link.target = "_blank"
    link.rel = "noopener noreferrer nofollow"
  }
  node.replaceChildren(template.content)
}
