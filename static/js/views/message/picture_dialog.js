// The pictures of a message in full size, one at a time.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { iconButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"

export function openPictureDialog(_, attachments, first) {
  let index = first
  const shown = el("figure", { class: "picture-view" })
  const show = (next) => {
    index = (next + attachments.length) % attachments.length
    const { url, alt, width, height } = attachments[index]
    replace(
      shown,
      el("img", { class: "picture-view__image", src: url, alt, width, height }),
      alt !== "" && el("figcaption", { class: "picture-view__caption", dir: "auto" }, alt),
    )
  }
  const onKey = (event) => {
    if (event.key === "ArrowLeft") show(index - 1)
    if (event.key === "ArrowRight") show(index + 1)
  }
  show(first)
  const step = (name, label, by) => iconButton(name, label, { click: () => show(index + by) })
  const steps = el(
    "div",
    { class: "picture-view__steps" },
    step("left", t("picture.previous"), -1),
    step("chevron", t("picture.next"), 1),
  )
  return openDialog({
    title: t("picture.title"),
    wide: true,
    content: () => el("div", { on: { keydown: onKey } }, shown, attachments.length > 1 && steps),
  })
}
