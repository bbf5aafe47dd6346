// The newest failed tasks of the memory of a space: how many there are, and for each its error, a link to its
// conversation, and a button that tries it again.
import { bdi, el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { mayLearnNow } from "../../models/memories/memory_rights.js"
import { readMemorySettings } from "../../models/memories/memory_settings.js"
import { paths } from "../../router.js"
import { button } from "../components/button.js"
import { conversationName } from "../conversation/conversation_name.js"

export default class FailedTasks {
  #parts
  #onRetry
  #count = el("p", { class: "field__hint", role: "status" })
  #list = el("ul", { class: "memory-list" })
  node = el("div", { "data-part": "failed-tasks", hidden: true }, this.#count, this.#list)

  // `onRetry` is called after a task was requested again.
  constructor(parts, onRetry) {
    this.#parts = parts
    this.#onRetry = onRetry
  }

  // Shows the failed tasks of a state that the API returned. The rows are only replaced if they have changed,
  // so that an element with the focus keeps it.
  show({ tasks: { failed: n }, failed_tasks: tasks }) {
    this.node.hidden = n === 0
    this.#count.textContent = n === 0 ? "" : t("memory.n_failed", { n })
    const shown = tasks.map((task) => ({ ...task, name: this.#nameOf(task), mayRetry: this.#mayRetry(task) }))
    const signature = JSON.stringify(shown)
    if (this.#list.dataset.signature === signature) return
    this.#list.dataset.signature = signature
    replace(
      this.#list,
      shown.map((task) => this.#row(task)),
    )
  }

  // Private

  #row({ id: taskId, kind, error, conversation_id: conversationId, name, mayRetry }) {
    const id = `failed-task-${taskId}`
    const retry = () => this.#retry(conversationId)
    const props = { look: "small", "data-act": "retry", "aria-describedby": id, click: retry }
    const link = () => el("a", { class: "memory__source", href: paths.conversation(conversationId) }, bdi(name))
    return el(
      "li",
      { class: "failed-task" },
      el("p", { class: "memory__facts", id }, t(`memory_task.${kind}`), error && [" · ", bdi(error)]),
      el(
        "div",
        { class: "memory__buttons" },
        conversationId !== null && el("div", { class: "memory__sources" }, link()),
        mayRetry && button(t("memory.retry"), props),
      ),
    )
  }

  #nameOf({ conversation_id: id }) {
    const { store } = this.#parts
    const known = store.conversations(store.openSpace.id).find((it) => it.id === id)
    return known ? conversationName(known, store.openSpace) : t("memory.conversation")
  }

  // The others are tried again by the server, or with the next request of a summary.
  #mayRetry({ kind, conversation_id: id }) {
    const { openSpace: space, myMembership } = this.#parts.store
    if (kind !== "extract" || id === null) return false
    return mayLearnNow(space, myMembership, readMemorySettings(space.settings))
  }

  async #retry(conversationId) {
    const { memories, store, toasts } = this.#parts
    try {
      await memories.learn(store.openSpace.id, conversationId)
    } catch (error) {
      return toasts.error(error)
    }
    toasts.show(t("memory.retry_notice"))
    return this.#onRetry()
  }
}
