// The public part of a character whose card is not shared: picture, notes, tags and greetings.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { avatar } from "../components/avatar.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"

export function showPublicCard(character) {
  return openDialog({
    title: t("card.edit_title", { name: character.name }),
    wide: true,
    content: (close) => [
      el("p", { class: "dialog__lead" }, t("card.not_shared")),
      head(character),
      greetings(character.public_card),
      el("div", { class: "form__actions" }, button(t("close"), { autofocus: true, click: () => close() })),
    ],
  })
}

function head({ name, avatar_url: url, public_card: card }) {
  return el(
    "header",
    { class: "card-preview__head" },
    avatar({ name, url, size: "preview" }),
    el(
      "div",
      { class: "grow" },
      el("h3", { class: "card-preview__name" }, bdi(card.name)),
      paragraphs(card.creator_notes || t("card.no_notes")),
      card.tags.length > 0 && el("p", { class: "soft small" }, bdi(card.tags.join(" · "))),
    ),
  )
}

function greetings({ greetings: all }) {
  if (all.length === 0) return el("p", { class: "soft" }, t("character.no_greeting"))
  return all.map((text) =>
    el("blockquote", { class: "card-preview__greeting", tabindex: "0", "aria-label": t("card.greeting") }, paragraphs(text)),
  )
}

function paragraphs(text) {
  return text.split("\n").map((line) => el("p", {}, line))
}
