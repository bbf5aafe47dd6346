// The dialogs that import a chat or a space from a file.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { isDocument, looksLikeChat, preview, matchMembers } from "../../models/files/chat_file.js"
import { inspectFile } from "../../models/files/dropped_file.js"
import { may } from "../../models/members/rights.js"
import { paths } from "../../router.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { chooseFile } from "../components/file_choice.js"
import { field, select } from "../components/form.js"
import { progress } from "./import_progress.js"

const SHOWN_NAMES = 30

// Imports a chat into a space; asks for a file unless one is given.
export async function openChatImportDialog(parts, spaceId, given = null) {
  const file = given ?? (await chooseFile("application/x-ndjson,.jsonl,application/json,.json"))
  if (!file) return
  const made = await openDialog({
    title: t("chats.import"),
    content: (close) => new ChatImport(parts, spaceId, file, close).node,
  })
  if (made) await arrive(parts, made)
}

// Imports a space; asks for a file unless one is given.
export async function openSpaceImportDialog(parts, given = null) {
  const file = given ?? (await chooseFile("application/zip,.zip"))
  if (!file) return
  const begin = () => parts.files.importSpace(file)
  const made = await openDialog({
    title: t("chats.import_space"),
    content: (close) => progress({ files: parts.files, begin, close, again: () => close() }),
  })
  if (made) await arrive(parts, made)
}

// Returns the importers. A dropped chat is imported into the open space, else into the first that
// allows it.
export function chatImporters(parts) {
  const canImport = (space) => space && may(space.my_role, "files")
  const chat = {
    name: "chat",
    looksLike: (file, head, json) => looksLikeChat(file, new TextDecoder().decode(head), json),
    open: (file) => {
      const { store, toasts } = parts
      const space = [store.openSpace, ...store.spaces].find(canImport)
      if (space) openChatImportDialog(parts, space.id, file)
      else toasts.show(t("chats.no_space"))
    },
  }
  const space = {
    name: "space",
    looksLike: (file) => /\.troupe\.zip$/i.test(file.name),
    open: (file) => openSpaceImportDialog(parts, file),
  }
  return [chat, space]
}

async function arrive({ spaces, router, toasts }, { conversation_id: id, space_id: spaceId }) {
  await spaces.load().catch((error) => toasts.error(error))
  const to = id ?? spaces.firstOf(spaceId)
  if (to) router.go(paths.conversation(to))
}

class ChatImport {
  #parts
  #spaceId
  #file
  #close
  node = el("div", { class: "import" })

  constructor(parts, spaceId, file, close) {
    this.#parts = parts
    this.#spaceId = spaceId
    this.#file = file
    this.#close = close
    this.#read()
  }

  async #read() {
    const { files } = this.#parts
    replace(this.node, el("p", { class: "import__text" }, t("chats.reading", { name: this.#file.name })))
    try {
      const { json } = await inspectFile(this.#file)
      if (isDocument(json)) return this.#showDocument()
      const [contents, roster] = await Promise.all([preview(this.#file), files.roster(this.#spaceId)])
      this.#show(contents, roster, files.myMembershipIn(roster))
    } catch {
      replace(this.node, el("p", { class: "form__error", role: "alert" }, t("chats.unreadable")))
    }
  }

  // Only the server reads chats of other programs; the report tells what it made of them.
  #showDocument() {
    replace(
      this.node,
      el("p", { class: "import__text" }, t("chats.document", { name: this.#file.name })),
      el("p", { class: "import__note" }, t("chats.document_hint")),
      this.#actions(() => ({})),
    )
    this.node.querySelector("[autofocus]").focus()
  }

  #show({ n, names }, roster, myMembership) {
    if (n === 0) {
      replace(this.node, el("p", { class: "form__error", role: "alert" }, t("chats.no_messages")))
      return
    }
    const shown = names.slice(0, SHOWN_NAMES)
    const defaults = matchMembers(names, roster, myMembership?.id ?? null)
    const memberships = roster.map((membership) => [String(membership.id), memberName(membership)])
    const fields = shown.map(({ name, isUser, n: times }, index) =>
      field({
        label: t(isUser ? "chats.person" : "chats.character", { name }),
        hint: t("chats.message_count", { n: times }),
        control: select([...memberships, ["new", t("chats.new_member")]], String(defaults[index])),
      }),
    )
    const changed = () => {
      const entries = shown.map(({ name }, index) => [name, fields[index].control.value, String(defaults[index])])
      const differing = entries.filter(([, value, before]) => value !== before)
      return Object.fromEntries(differing.map(([name, value]) => [name, value === "new" ? "new" : Number(value)]))
    }
    replace(
      this.node,
      el("p", { class: "import__text" }, t("chats.found", { n, name: this.#file.name })),
      el("p", { class: "import__note" }, t("chats.map_names")),
      el("div", { class: "import__names" }, fields.map(({ node }) => node)),
      names.length > SHOWN_NAMES &&
        el("p", { class: "import__note" }, t("chats.more_names", { n: names.length - SHOWN_NAMES })),
      this.#actions(changed),
    )
    this.node.querySelector("[autofocus]").focus()
  }

  // `names()` returns the names that are not mapped as the server does by default.
  #actions(names) {
    return el(
      "div",
      { class: "form__actions" },
      button(t("cancel"), { look: "quiet", click: () => this.#close() }),
      button(t("chats.start_import"), { look: "primary", autofocus: true, click: () => this.#import(names()) }),
    )
  }

  #import(names) {
    const { files } = this.#parts
    const begin = () => files.importChat(this.#spaceId, this.#file, names)
    replace(
      this.node,
      progress({ files, begin, close: this.#close, again: () => this.#read() }),
    )
  }
}

function memberName({ display_name: name, status, kind }) {
  if (status === "removed") return t("chats.member_removed", { name })
  return t(kind === "human" ? "chats.member_person" : "chats.member_character", { name })
}
