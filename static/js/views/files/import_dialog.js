// The dialogs that import a chat or a space from a file.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { chosenNames } from "../../models/files/chat_authors.js"
import { looksLikeChat } from "../../models/files/chat_file.js"
import { may } from "../../models/members/rights.js"
import { paths } from "../../router.js"
import { button } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"
import { chooseFile } from "../components/file_choice.js"
import { field, select } from "../components/form.js"
import { conversationList, reportNotes } from "./chat_preview.js"
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
      const [found, roster] = await Promise.all([
        files.previewChat(this.#spaceId, this.#file),
        files.roster(this.#spaceId),
      ])
      this.#show(found, roster)
    } catch (error) {
      replace(this.node, el("p", { class: "form__error", role: "alert" }, explain(error)))
    }
  }

  #show(found, roster) {
    const { n_messages: n, n_authors: nAuthors } = found
    const memberships = roster.map((membership) => [String(membership.id), memberName(membership)])
    const authors = found.authors.slice(0, SHOWN_NAMES).map(({ name, is_user: isUser, n_messages: times, membership_id: id }) => {
      const assigned = String(id ?? "new")
      // A space with many members lists only the first ones.
      const isListed = id === null || memberships.some(([listed]) => listed === assigned)
      const members = isListed ? memberships : [...memberships, [assigned, name]]
      const { node, control } = field({
        label: t(isUser ? "chats.person" : "chats.character", { name }),
        hint: t("chats.message_count", { n: times }),
        control: select([...members, ["new", t("chats.new_member")]], assigned),
      })
      return { name, isUser, assigned, node, control }
    })
    const others = found.authors.slice(SHOWN_NAMES).map(({ name, is_user: isUser, membership_id: id }) => {
      const assigned = String(id ?? "new")
      return { name, isUser, assigned, value: assigned }
    })
    const chosen = () => chosenNames([...authors.map((it) => ({ ...it, value: it.control.value })), ...others])
    replace(
      this.node,
      el("p", { class: "import__text" }, t("chats.found", { n, name: this.#file.name })),
      conversationList(found),
      reportNotes(found.report),
      el("p", { class: "import__note" }, t("chats.map_names")),
      el("div", { class: "import__names" }, authors.map(({ node }) => node)),
      nAuthors > authors.length &&
        el("p", { class: "import__note" }, t("chats.more_names", { n: nAuthors - authors.length })),
      this.#actions(chosen),
    )
    this.node.querySelector("[autofocus]").focus()
  }

  // `names()` returns the assignments that the server does not make by default.
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
