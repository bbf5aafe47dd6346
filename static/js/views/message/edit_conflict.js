// The dialog of an edit conflict: both texts side by side, and which one to keep.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"

// `present` is the current message, `mine` the user's text. Resolves with "mine", "theirs", "merge", or
// undefined if the user continues to edit.
export function openEditConflict(parts, { present, mine }) {
  const editor = parts.store.openRoster.nameOf(present.edited_by)
  const lead = editor ? t("edit.conflict_by", { name: editor }) : t("edit.conflict")
  return openDialog({
    title: t("edit.conflict_title"),
    wide: true,
    content: (close) => [
      el("p", { class: "dialog__lead" }, lead),
      el(
        "div",
        { class: "edit-conflict" },
        version("theirs", t("edit.their_text"), present.content),
        version("mine", t("edit.my_text"), mine),
      ),
      el(
        "div",
        { class: "form__actions" },
        button(t("edit.merge"), { look: "quiet", click: () => close("merge") }),
        button(t("edit.use_theirs"), { click: () => close("theirs") }),
        button(t("edit.use_mine"), { look: "primary", autofocus: true, click: () => close("mine") }),
      ),
    ],
  })
}

function version(side, label, text) {
  return el(
    "section",
    { class: "edit-conflict__side", "aria-label": label, "data-side": side },
    el("h3", { class: "edit-conflict__label" }, label),
    el("div", { class: "edit-conflict__text", dir: "auto", tabindex: "0" }, text),
  )
}
