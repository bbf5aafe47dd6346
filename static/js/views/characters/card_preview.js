// The preview of a card file before it is stored: name, greeting, contents and warnings.
import { bdi, el, icon } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { looksLikeCard } from "../../models/characters/card_file.js"
import { isPicture } from "../../models/files/picture_file.js"
import { may } from "../../models/members/rights.js"
import { sentencesOf } from "../../models/files/import_warnings.js"
import { avatar } from "../components/avatar.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"
import { openRefusal, warningList } from "../files/import_preview.js"
import { scriptPreview } from "../regex_scripts/script_list.js"

// Returns the importer that opens a preview for card files.
export function cardImporter(parts) {
  return { name: "card", looksLike: looksLikeCard, open: (file) => openCardPreview(parts, file) }
}

async function openCardPreview(parts, file) {
  let found
  try {
    found = await parts.library.preview(file)
  } catch (error) {
    return openRefusal(file, error)
  }
  await openDialog({ title: t("card.preview"), content: (close) => preview(parts, file, found, close) })
}

function preview(parts, file, found, close) {
  const problem = el("p", { class: "form__error", role: "alert", hidden: true })
  return [
    head(found),
    greeting(found),
    el("ul", { class: "card-preview__facts" }, facts(found)),
    warningList(sentencesOf(found)),
    found.scripts.length > 0 && scriptPreview(found.scripts),
    problem,
    el("div", { class: "form__actions" }, actions(parts, file, close, problem)),
  ]
}

function head({ name, avatar: url, card, spec_version: version }) {
  const creator = (card.data ?? card).creator
  const by = typeof creator === "string" && creator.trim() !== "" ? t("card.by", { name: creator.trim() }) : null
  return el(
    "header",
    { class: "card-preview__head" },
    avatar({ name, url, size: "preview" }),
    el(
      "div",
      { class: "grow" },
      el("h3", { class: "card-preview__name" }, bdi(name)),
      el("p", { class: "soft small" }, [by, t("card.version", { version })].filter(Boolean).join(" · ")),
    ),
  )
}

function greeting({ greeting: text }) {
  if (!text) return el("p", { class: "soft" }, t("character.no_greeting"))
  return el(
    "blockquote",
    { class: "card-preview__greeting", tabindex: "0", "aria-label": t("card.greeting") },
    text.split("\n").map((line) => el("p", {}, line)),
  )
}

function facts({ greetings, lore_entries: n, linked_world: world, duplicate_of: duplicate }) {
  const found = [
    greetings > 1 && ["list", t("card.greetings", { n: greetings })],
    n > 0 && ["spark", t("card.lore", { n })],
    world && ["branch", t("card.world", { name: world })],
    duplicate && ["check", t("card.duplicate")],
  ]
  return found.filter(Boolean).map(([name, text]) => el("li", { class: "card-preview__fact" }, icon(name), text))
}

function actions(parts, file, close, problem) {
  const { openSpace: space } = parts.store
  const mayAddToSpace = space && space.status !== "archived" && may(space.my_role, "characters")
  const act = (run) => async (event) => {
    const buttons = [...event.currentTarget.parentElement.querySelectorAll("button")]
    for (const it of buttons) it.disabled = true
    try {
      await run()
      close(true)
    } catch (error) {
      problem.textContent = explain(error)
      problem.hidden = false
      for (const it of buttons) it.disabled = false
    }
  }
  const addToLibrary = act(async () => {
    const { character } = await parts.library.importFile(file)
    parts.toasts.show(t("card.added_to_library", { name: character.name }))
  })
  const addToSpace = act(async () => {
    const { character } = await parts.library.importFile(file)
    await parts.members.add(space.id, character.id)
    parts.toasts.show(t("card.added_to_space", { name: character.name, space: space.name }))
  })
  const { onFiles } = parts.pictures
  const addAsPicture = act(async () => onFiles([file]))
  return [
    onFiles && isPicture(file) && button(t("picture.add_card"), { look: "quiet", click: addAsPicture }),
    button(t("card.add_to_library"), {
      look: mayAddToSpace ? "quiet" : "primary",
      "data-act": "add_to_library",
      click: addToLibrary,
    }),
    mayAddToSpace &&
      button(t("card.add_to_space", { name: space.name }), {
        look: "primary",
        "data-act": "add_to_space",
        autofocus: true,
        click: addToSpace,
      }),
  ]
}
