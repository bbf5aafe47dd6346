// An avatar: the picture of a member, or initials.
import { el } from "../../base/dom.js"
import { thumbnailUrl, hue, initials } from "../../models/members/avatar.js"

export function hueClass(name) {
  return `hue-${hue(name)}`
}

// Every size but "preview" shows the small picture. `presence` is "online", "away", "offline", or null if it does not apply.
export function avatar({ name, url = null, size = null, presence = null }) {
  const src = url && size !== "preview" ? thumbnailUrl(url) : url
  return el(
    "span",
    {
      class: `avatar ${size ? `avatar--${size}` : ""} ${hueClass(name)}`,
      "aria-hidden": "true",
      "data-initials": url ? null : initials(name),
    },
    url && el("img", { class: "avatar__image", src, alt: "", loading: "lazy", decoding: "async" }),
    presence && el("span", { class: `avatar__presence avatar__presence--${presence}` }),
  )
}
