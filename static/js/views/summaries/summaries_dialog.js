// The dialog "Summaries" of the open conversation: the running summary, its older versions and the
// parts from which it was made.
import { append, bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { throttle } from "../../base/timing.js"
import { mayChangeSummaries, splitSummaries, stateOf } from "../../models/summaries/summary.js"
import { readSummarySettings } from "../../models/summaries/summary_settings.js"
import { button, iconButton } from "../components/button.js"
import { confirm, openDialog } from "../components/dialog.js"
import { explain } from "../components/error_messages.js"
import { openSource } from "../memories/memory_source.js"
import PartList from "./part_list.js"
import SummaryEditor from "./summary_editor.js"
import { originText, rangeLink } from "./summary_text.js"
import VersionList from "./version_list.js"

// The shortest time between two reads while several summaries are written.
const RELOAD_MS = 500

// Goes to a message if the user has followed a link to it.
export async function openSummariesDialog(parts, conversation) {
  const view = new SummariesView(parts, conversation.id)
  const summary = await openDialog({
    title: t("summary.title"),
    wide: true,
    isUnsaved: () => view.isUnsaved,
    content: (close) => view.mount(close),
  })
  view.unmount()
  if (!summary) return
  const { conversation_id: id, from_seq: from, to_seq: to } = summary
  await openSource(parts, { conversation_id: id, source_from_seq: from, source_to_seq: to })
}

class SummariesView {
  #parts
  #conversationId
  #close
  #all = null
  #request = 0
  #isMounted = false
  #reload = throttle(() => this.#isMounted && this.#load(), RELOAD_MS)
  #stops = []
  #notice = el("p", { class: "outcome", hidden: true }, icon("alert"), t("summary.is_off"))
  #empty = el("p", { class: "panel__empty", role: "status" }, t("loading"))
  #state = el("p", { class: "summary__state", role: "status" })
  #facts = el("p", { class: "summary__facts" })
  #running
  #editor
  #summarize = button(t("summary.summarize"), { icon: "spark", click: () => this.#requestSummary() })
  #actions = el("div", { class: "form__actions form__actions--start" }, this.#summarize)
  #outcome = el("p", { class: "outcome", role: "status", hidden: true })
  #versions
  #partList

  constructor(parts, conversationId) {
    this.#parts = parts
    this.#conversationId = conversationId
    this.#editor = new SummaryEditor(parts, { onChange: () => this.#load() })
    this.#versions = new VersionList(parts, { restore: (version) => this.#restore(version) })
    this.#partList = new PartList(parts, { follow: (summary) => this.#follow(summary) })
  }

  // Lifecycle

  mount(close) {
    this.#close = close
    const refresh = iconButton("retry", t("summary.refresh"), { look: "small", click: () => this.#load() })
    this.#running = el(
      "section",
      { class: "summary", hidden: true, "data-section": "summary" },
      el("h3", { class: "panel__title" }, t("summary.current")),
      this.#state,
      this.#facts,
      this.#editor.node,
    )
    this.#isMounted = true
    const { store } = this.#parts
    this.#stops = [
      store.onAny(["spaces", "rights", "roster"], () => this.#show()),
      store.on("summaries", (event) => event.conversation_id === this.#conversationId && this.#reload()),
      store.on("memories", (event) => event.type === "memories_forgotten" && this.#reload()),
      store.on("gap", () => this.#reload()),
    ]
    this.#load()
    return [
      el("div", { class: "field__row" }, el("p", { class: "dialog__lead grow" }, t("summary.hint")), refresh),
      this.#notice,
      this.#empty,
      this.#running,
      this.#actions,
      this.#outcome,
      this.#versions.node,
      this.#partList.node,
    ]
  }

  unmount() {
    this.#isMounted = false
    this.#request += 1
    for (const stop of this.#stops) stop()
  }

  get isUnsaved() {
    return this.#editor.isUnsaved
  }

  // Private

  // Drops the response of an outdated request.
  async #load() {
    const request = ++this.#request
    try {
      const all = await this.#parts.summaries.list(this.#conversationId)
      if (request !== this.#request) return
      this.#all = all
      this.#parts.store.applySummary(this.#conversationId, splitSummaries(all).running)
      this.#show()
    } catch (error) {
      if (request !== this.#request) return
      if (this.#all) this.#parts.toasts.error(error)
      else this.#empty.textContent = explain(error)
    }
  }

  #show() {
    const { openSpace: space, myMembership } = this.#parts.store
    if (!space) return
    const mayChange = mayChangeSummaries(space, myMembership)
    const { enabled } = readSummarySettings(space.settings)
    this.#notice.hidden = enabled
    this.#actions.hidden = !mayChange || !enabled
    if (!this.#all) return
    const { running, versions, parts } = splitSummaries(this.#all)
    this.#empty.hidden = this.#all.length > 0 || !enabled
    this.#empty.textContent = t("summary.empty")
    this.#running.hidden = running === null
    if (running) this.#showRunning(running, mayChange)
    this.#versions.show({ versions, running, mayChange })
    this.#partList.show(parts)
  }

  #showRunning(running, mayChange) {
    const state = stateOf(running)
    // Is announced again only if it has changed.
    if (this.#state.dataset.state !== state) {
      this.#state.dataset.state = state
      replace(this.#state, icon(state === "current" ? "check" : "alert"), t(`summary_state.${state}`))
    }
    const { version, token_count: n } = running
    const hasFocus = this.#facts.contains(document.activeElement)
    const link = rangeLink(running, (it) => this.#follow(it))
    replace(this.#facts, link)
    const facts = [
      t("summary.version", { version }),
      bdi(originText(this.#parts.store, running)),
      t("summary.tokens", { n }),
    ]
    for (const it of facts) append(this.#facts, [" · ", it])
    if (hasFocus) link.focus()
    this.#editor.setReadOnly(!mayChange)
    this.#editor.show(running)
  }

  async #requestSummary() {
    this.#summarize.setAttribute("aria-busy", "true")
    try {
      await this.#parts.summaries.summarize(this.#conversationId)
      this.#say(t("summary.requested"))
    } catch (error) {
      this.#say(explain(error), { isBad: true })
    } finally {
      this.#summarize.removeAttribute("aria-busy")
    }
  }

  #say(text, { isBad = false } = {}) {
    this.#outcome.className = isBad ? "outcome outcome--bad" : "outcome"
    this.#outcome.hidden = false
    this.#outcome.textContent = text
  }

  async #restore(version) {
    if (!(await this.#mayDiscard())) return
    try {
      const restored = await this.#parts.summaries.restore(version)
      this.#editor.show(restored, { discards: true })
      this.#parts.toasts.show(t("summary.restored"))
      await this.#load()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  async #follow(summary) {
    if (await this.#mayDiscard()) this.#close(summary)
  }

  // Resolves with whether there are no unsaved changes, or the user discards them.
  async #mayDiscard() {
    if (!this.isUnsaved) return true
    return confirm({ title: t("discard_title"), text: t("discard_text"), action: t("discard") })
  }
}
