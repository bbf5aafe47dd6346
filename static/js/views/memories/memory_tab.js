// The tab "Memory": what is remembered in the open space, with search, filters and changes.
import { el, reconcile, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { throttle } from "../../base/timing.js"
import { may } from "../../models/members/rights.js"
import MemoryList from "../../models/memories/memory_list.js"
import { aboutChoices, forgettable, mayChangeAbout, mayLearnNow, mayReplaceAll } from "../../models/memories/memory_rights.js"
import { readMemorySettings } from "../../models/memories/memory_settings.js"
import { button, iconButton } from "../components/button.js"
import { confirm } from "../components/dialog.js"
import { saveFile } from "../components/file_choice.js"
import { openMemoryImport, openPruneDialog, showPromptOfRun } from "../on_demand.js"
import FailedTasks from "./failed_tasks.js"
import { openForgetDialog } from "./forget_dialog.js"
import { openEditMemoryDialog, openNewMemoryDialog } from "./memory_dialog.js"
import MemoryFilters from "./memory_filters.js"
import { createMemoryRow, fillMemoryRow } from "./memory_row.js"
import { openSource } from "./memory_source.js"
import { stateTexts } from "./memory_state.js"
import { deleteWords } from "./memory_text.js"

// The shortest time between two reads of the list while many memories change.
const RELOAD_MS = 1000

export default class MemoryTab {
  #root
  #parts
  #memories = new MemoryList()
  #filters = new MemoryFilters(() => this.#load())
  #notice = el("p", { class: "field__hint", hidden: true })
  #failed
  #buttons = el("div", { class: "member__buttons" })
  #state = el("p", { class: "field__hint", "data-part": "memory-state", tabindex: "-1" })
  #status = el("p", { class: "member__note", role: "status" })
  #list = el("ul", { class: "memory-list" })
  #more = button(t("memory.more"), { look: "small quiet wide", hidden: true, click: () => this.#loadMore() })
  #spaceId = null
  #isLoaded = false
  #isMounted = false
  #request = 0
  #stateRequest = 0
  #isReading = false
  #reload = throttle(() => this.#isMounted && this.#load(), RELOAD_MS)
  #reloadState = throttle(() => this.#isMounted && this.#showState(), RELOAD_MS)
  #stops = []
  #acts

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
    this.#failed = new FailedTasks(parts, () => this.#afterRetry())
    this.#acts = {
      edit: (memory) => this.#edit(memory),
      pin: (memory) => this.#pin(memory),
      remove: (memory) => this.#remove(memory),
      openSource: (memory) => openSource(parts, memory),
      openRecall: (memory) => showPromptOfRun(parts, memory.last_recall.run_id),
    }
  }

  // Lifecycle

  mount() {
    const refresh = iconButton("retry", t("memory.refresh"), { look: "small", click: () => this.#load() })
    replace(
      this.#root,
      el(
        "section",
        { class: "panel__section memories" },
        el("div", { class: "panel__title" }, el("h2", {}, t("memory.title")), refresh),
        el("p", { class: "field__hint" }, t("memory.hint")),
        this.#notice,
        this.#failed.node,
        this.#buttons,
        this.#filters.node,
        this.#state,
        this.#status,
        this.#list,
        this.#more,
      ),
    )
    const { store } = this.#parts
    this.#isMounted = true
    this.#stops = [
      store.onAny(["spaces", "rights", "roster"], () => this.#update()),
      store.on("memories", (event) => this.#apply(event)),
      store.on("gap", () => this.#reload()),
    ]
    this.#update()
  }

  unmount() {
    this.#isMounted = false
    this.#request += 1
    for (const stop of this.#stops) stop()
  }

  // Private

  // Shows names, rights and settings again. The space may become known after the tab is opened.
  #update() {
    const { store } = this.#parts
    const space = store.openSpace
    if (!space) return
    this.#filters.showSpace(store)
    this.#showHead(space)
    if (this.#isLoaded) this.#show()
    if (this.#spaceId === space.id) return
    this.#spaceId = space.id
    this.#load()
  }

  // Applies an event of the socket.
  #apply(event) {
    if (event.space_id !== this.#spaceId) return
    const rows = [...this.#list.children]
    const focused = rows.findIndex((it) => it.contains(document.activeElement))
    const result = this.#memories.apply(event, { isFiltered: !this.#filters.isEmpty })
    if (event.type === "memory_state") this.#reloadState()
    // The response of a pending request may be older than the event.
    if (result === "stale" || this.#isReading) this.#reload()
    if (result !== "changed" || !this.#isLoaded) return
    this.#show()
    if (focused !== -1 && !rows[focused].isConnected) this.#focusRow(focused)
  }

  #focusRow(index) {
    const next = this.#list.children[index] ?? this.#list.lastElementChild
    if (next) next.focus()
    else this.#filters.focus()
  }

  #showHead(space) {
    const { myMembership, openConversation } = this.#parts.store
    const rules = readMemorySettings(space.settings)
    const mayLearn = openConversation && mayLearnNow(space, myMembership, rules)
    this.#notice.hidden = rules.enabled && rules.learn
    this.#notice.textContent = rules.enabled ? t("memory.does_not_learn") : t("memory.is_off")
    const ways = [
      this.#mayAdd(space) && ["add", t("memory.add"), { icon: "plus", click: () => this.#add() }],
      mayLearn && ["learn", t("memory.learn"), { click: () => this.#learn() }],
      this.#forgettable(space).length > 0 && ["forget", t("memory.forget"), { click: () => this.#forget() }],
      mayReplaceAll(space) && ["prune", t("memory.prune"), { click: () => this.#prune() }],
      mayReplaceAll(space) && ["import", t("memory.import"), { icon: "up", click: () => this.#import() }],
      may(space.my_role, "files") && ["export", t("memory.export"), { icon: "down", click: () => this.#export() }],
    ].filter(Boolean)
    reconcile(this.#buttons, ways, {
      key: ([name]) => name,
      create: ([, label, props]) => button(label, { look: "small", ...props }),
      update: () => {},
    })
  }

  #mayAdd(space) {
    const { myMembership, openRoster } = this.#parts.store
    const ids = openRoster.active.map((it) => it.id)
    return aboutChoices(space, myMembership, ids).length > 0
  }

  #forgettable(space) {
    const { myMembership, openRoster, openConversation } = this.#parts.store
    const memberIds = openRoster.active.map((it) => it.id)
    return forgettable(space, myMembership, { memberIds, conversationId: openConversation?.conversationId })
  }

  // Drops the response of an outdated request.
  async #read(cursor) {
    const request = ++this.#request
    this.#isReading = true
    this.#list.setAttribute("aria-busy", "true")
    try {
      const page = await this.#parts.memories.list(this.#spaceId, this.#filters.value, cursor)
      return request === this.#request ? page : null
    } catch (error) {
      if (request === this.#request) this.#parts.toasts.error(error)
      return null
    } finally {
      if (request === this.#request) {
        this.#isReading = false
        this.#list.removeAttribute("aria-busy")
      }
    }
  }

  async #load() {
    this.#showState()
    const page = await this.#read(null)
    if (!page) return
    this.#memories.reset(page)
    this.#isLoaded = true
    this.#show()
  }

  // An error is ignored: the list can be used without the state. Drops an outdated response.
  async #showState() {
    const request = ++this.#stateRequest
    const state = await this.#parts.memories.state(this.#spaceId).catch(() => null)
    if (!state || !this.#isMounted || request !== this.#stateRequest) return
    this.#state.textContent = stateTexts(state).join(" ")
    this.#failed.show(state)
  }

  // Moves the focus, because the button that had it is replaced.
  async #afterRetry() {
    await this.#showState()
    this.#state.focus()
  }

  // Moves the focus to the first added memory if there are no more.
  async #loadMore() {
    const n = this.#memories.memories.length
    const page = await this.#read(this.#memories.cursor)
    if (!page) return
    this.#memories.append(page)
    this.#show()
    if (this.#more.hidden) this.#list.children[n]?.focus()
  }

  #show() {
    const { store } = this.#parts
    const { memories, cursor } = this.#memories
    const space = store.openSpace
    if (!space) return
    this.#status.textContent = this.#summary(memories.length, cursor !== null)
    this.#status.className = memories.length > 0 ? "member__note" : "panel__empty"
    this.#more.hidden = cursor === null
    reconcile(this.#list, memories, {
      key: (memory) => String(memory.id),
      create: createMemoryRow,
      update: (node, memory) => {
        const mayChange = mayChangeAbout(space, store.myMembership, memory.about_membership_id)
        fillMemoryRow(node, memory, { store, mayChange, acts: this.#acts })
      },
    })
  }

  #summary(n, hasMore) {
    if (n === 0) return this.#filters.isEmpty ? t("memory.empty") : t("memory.nothing_found")
    return hasMore ? t("memory.n_newest", { n }) : t("memory.n_shown", { n })
  }

  async #add() {
    if (!(await openNewMemoryDialog(this.#parts))) return
    this.#parts.toasts.show(t("memory.added_notice"))
    await this.#load()
  }

  async #edit(memory) {
    const changed = await openEditMemoryDialog(this.#parts, memory)
    if (changed) this.#put(changed)
  }

  async #pin(memory) {
    try {
      this.#put(await this.#parts.memories.change(memory, { pinned: !memory.pinned }))
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
    this.#parts.toasts.show(t("memory.deleted"))
    // Its event may have removed it before the response.
    if (index !== -1) this.#focusRow(index)
  }

  async #learn() {
    const { openConversation } = this.#parts.store
    if (!openConversation) return
    try {
      await this.#parts.memories.learn(this.#spaceId, openConversation.conversationId)
      this.#parts.toasts.show(t("memory.learn_notice"))
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  async #forget() {
    const scopes = this.#forgettable(this.#parts.store.openSpace)
    const n = await openForgetDialog(this.#parts, scopes)
    if (n === undefined) return
    this.#parts.toasts.show(t("memory.forgotten", { n }))
    await this.#load()
  }

  async #prune() {
    const n = await openPruneDialog(this.#parts)
    if (n === undefined) return
    this.#parts.toasts.show(t("memory.pruned", { n }))
    await this.#load()
  }

  async #import() {
    if (await openMemoryImport(this.#parts)) await this.#load()
  }

  #export() {
    saveFile(this.#parts.memories.exportPath(this.#spaceId))
  }
}
