// The dialog "What was learned from this message": the memories that were made from it, with their
// actions.
import { el, reconcile } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import MemoryList from "../../models/memories/memory_list.js"
import { mayChangeAbout } from "../../models/memories/memory_rights.js"
import { confirm, openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"
import { openEditMemoryDialog } from "./memory_dialog.js"
import { createMemoryRow, fillMemoryRow } from "./memory_row.js"
import { deleteWords } from "./memory_text.js"

export function openLearnedDialog(parts, message) {
  return openDialog({
    title: t("memory.learned_title"),
    content: () => new LearnedMemories(parts, message).nodes,
  })
}

class LearnedMemories {
  #parts
  #spaceId
  #memories = new MemoryList()
  #status = el("p", { class: "field__hint", role: "status", tabindex: "-1" }, t("loading"))
  #list = el("ul", { class: "memory-list" })
  #acts = {
    edit: (memory) => this.#edit(memory),
    pin: (memory) => this.#change(memory, { pinned: !memory.pinned }),
    remove: (memory) => this.#remove(memory),
  }
  nodes = [this.#status, this.#list]

  constructor(parts, message) {
    this.#parts = parts
    this.#spaceId = parts.store.openSpace.id
    this.#load(message)
  }

  // Private

  async #load({ id }) {
    try {
      this.#memories.reset(await this.#parts.memories.learnedFrom(this.#spaceId, id))
      this.#show()
    } catch (error) {
      this.#status.textContent = explain(error)
    }
  }

  #show() {
    const { store } = this.#parts
    const { memories } = this.#memories
    const n = memories.length
    this.#status.textContent = n > 0 ? t("memory.n_shown", { n }) : t("memory.learned_none")
    reconcile(this.#list, memories, {
      key: (memory) => String(memory.id),
      create: createMemoryRow,
      update: (node, memory) => {
        const mayChange = mayChangeAbout(store.openSpace, store.myMembership, memory.about_membership_id)
        fillMemoryRow(node, memory, { store, mayChange, acts: this.#acts })
      },
    })
  }

  async #edit(memory) {
    const changed = await openEditMemoryDialog(this.#parts, memory)
    if (changed) this.#put(changed)
  }

  async #change(memory, changes) {
    try {
      this.#put(await this.#parts.memories.change(memory, changes))
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  #put(memory) {
    this.#memories.put(memory)
    this.#show()
  }

  async #remove(memory) {
    if (!(await confirm(deleteWords()))) return
    try {
      await this.#parts.memories.remove(memory)
    } catch (error) {
      if (error.status !== 404) return this.#parts.toasts.error(error)
    }
    const index = this.#memories.remove(memory.id)
    this.#show()
    const next = this.#list.children[index] ?? this.#list.lastElementChild ?? this.#status
    next.focus()
  }
}
