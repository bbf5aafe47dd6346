// Completes `@` at the composer with people and characters, and remembers which of them were chosen.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { insertMention, matching, mentionedIds, queryAt } from "../../models/conversation/mentions.js"
import { avatar } from "../components/avatar.js"

export default class MentionSource {
  label = t("mentions.label")
  note = null
  queryAt = queryAt
  #members
  // The chosen members, with the names under which they were inserted.
  #chosen = []

  // `members()` returns those that can be mentioned.
  constructor(members) {
    this.#members = members
  }

  // Returns the ids of the chosen members whose name is in the text.
  idsIn(text) {
    return mentionedIds(text, this.#chosen)
  }

  // Forgets the chosen members, because the message was sent.
  reset() {
    this.#chosen = []
  }

  options(query) {
    return matching(this.#members(), query)
  }

  isComplete(members, query) {
    return members.length === 1 && members[0].display_name === query
  }

  content({ display_name: name, avatar_url: url, kind }) {
    return [
      avatar({ name, url, size: "small" }),
      bdi(name, "truncate grow"),
      el("span", { class: "completions__kind" }, kind === "character" ? t("mentions.character") : t("mentions.person")),
    ]
  }

  data({ id }) {
    return { "data-member": id }
  }

  insert(text, query, { id, display_name: name }) {
    this.#chosen.push({ id, name })
    return insertMention(text, query, name)
  }
}
