// The runs of all spaces: refreshed every few seconds while the page is visible, with buttons to cancel
// a run and to start the recovery.
import { bdi, el, reconcile, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { duration, fullTime, seconds, shortTime } from "../base/time.js"
import RunHistory from "../models/runs/run_history.js"
import { paths } from "../router.js"
import { button } from "../views/components/button.js"
import { detailList, detailsOf } from "../views/prompt/run_details.js"
import { card } from "../views/settings/settings_profile.js"
import RunFilter from "./run_filter.js"

const EVERY_MS = 3000

export default class Runs {
  #parts
  #history = new RunHistory()
  #filter = new RunFilter(() => this.#restart())
  #list = el("div", {})
  #more = button(t("run_history.older"), { click: () => this.#older() })
  #report = el("div", { role: "status" })
  #timer = null
  #request = 0

  constructor(parts) {
    this.#parts = parts
  }

  // Lifecycle

  mount(root) {
    this.#more.hidden = true
    const recover = button(t("run_history.recover"), { click: (event) => this.#recover(event.currentTarget) })
    root.append(
      card(
        t("admin.runs"),
        el("div", { class: "form__actions form__actions--start" }, recover, this.#report),
        this.#filter.node,
        this.#list,
        this.#more,
      ),
    )
    document.addEventListener("visibilitychange", this.#refresh)
    this.#refresh()
  }

  unmount() {
    this.#request += 1
    clearTimeout(this.#timer)
    document.removeEventListener("visibilitychange", this.#refresh)
  }

  // Private

  #restart() {
    this.#history.clear()
    this.#refresh()
  }

  // A hidden page does not refresh; it refreshes when it becomes visible.
  #refresh = async () => {
    clearTimeout(this.#timer)
    if (document.hidden) return
    const request = ++this.#request
    try {
      const page = await this.#parts.admin.runs(this.#filter.value, { limit: this.#history.refreshLimit })
      if (request !== this.#request) return
      this.#history.refresh(page)
      this.#show()
    } catch (error) {
      if (request !== this.#request) return
      // A lost connection has a banner of its own, and the next refresh may succeed.
      if (!error.isNetwork) this.#parts.toasts.error(error)
    }
    this.#timer = setTimeout(this.#refresh, EVERY_MS)
  }

  async #older() {
    const request = ++this.#request
    clearTimeout(this.#timer)
    try {
      const page = await this.#parts.admin.runs(this.#filter.value, { before: this.#history.oldest })
      if (request !== this.#request) return
      this.#history.append(page)
      this.#show()
    } catch (error) {
      this.#parts.toasts.error(error)
    }
    if (request === this.#request) this.#timer = setTimeout(this.#refresh, EVERY_MS)
  }

  #show() {
    const { runs, hasMore } = this.#history
    this.#more.hidden = !hasMore
    if (runs.length === 0) return replace(this.#list, el("p", { class: "panel__empty" }, t("run_history.empty")))
    this.#list.querySelector(".panel__empty")?.remove()
    return reconcile(this.#list, runs, {
      key: (run) => run.id,
      create: (run) =>
        el(
          "details",
          { class: "run", "data-run-id": run.id },
          el("summary", { class: "run__summary" }),
          el("div", { class: "run__facts" }),
        ),
      update: (node, run) => this.#fill(node, run),
    })
  }

  // Unchanged rows are not replaced, so that they keep the focus.
  #fill(node, run) {
    const signature = JSON.stringify(run)
    if (node.dataset.signature === signature) return
    node.dataset.signature = signature
    node.className = `run run--${run.status}`
    const at = Date.parse(run.started_at ?? run.created_at)
    replace(
      node.querySelector("summary"),
      el(
        "span",
        { class: "grow run__who" },
        bdi(run.speaker_name, "truncate"),
        el("span", { class: "member__note truncate" }, placeOf(run)),
      ),
      el(
        "span",
        { class: "run__when" },
        el("span", { class: "run__state" }, stateOf(run)),
        el("time", { class: "member__note", datetime: run.created_at, title: fullTime(at) }, shortTime(at)),
      ),
    )
    const facts = node.querySelector(".run__facts")
    const focused = facts.contains(document.activeElement) ? document.activeElement.dataset.act : null
    replace(facts, detailList([...detailsOf(run), ...inside(run)]), this.#tools(run))
    facts.querySelector(`[data-act="${focused}"]`)?.focus()
  }

  #tools(run) {
    const place = { id: run.conversation_id, name: run.conversation_title || t("conversation.main") }
    const isGoing = run.status === "queued" || run.status === "running"
    const small = (act, label, click) => button(label, { look: "small", "data-act": act, click })
    return el(
      "div",
      { class: "member__buttons" },
      isGoing && small("cancel", t("run_history.cancel"), () => this.#cancel(run)),
      small("space", t("run_history.only_space"), () =>
        this.#filter.narrow("space", { id: run.space_id, name: run.space_name }),
      ),
      small("conversation", t("run_history.only_conversation"), () => this.#filter.narrow("conversation", place)),
      el(
        "a",
        { class: "button button--small", "data-act": "open", href: paths.conversation(run.conversation_id) },
        t("run_history.open"),
      ),
    )
  }

  async #cancel(run) {
    try {
      await this.#parts.admin.cancel(run)
    } catch (error) {
      this.#parts.toasts.error(error)
    }
    this.#refresh()
  }

  async #recover(pressed) {
    pressed.disabled = true
    try {
      replace(this.#report, el("p", { class: "outcome" }, reportOf(await this.#parts.admin.recover())))
    } catch (error) {
      this.#parts.toasts.error(error)
    }
    pressed.disabled = false
    this.#refresh()
  }
}

function placeOf({ space_name: space, conversation_title: title }) {
  return bdi(title ? `${space} · ${title}` : space)
}

function stateOf(run) {
  const state = t(`run_status.${run.status}`)
  return run.live ? `${state} · ${t("run_history.chars", { n: run.live.chars })}` : state
}

// Details for administrators only.
function inside(run) {
  const due = Date.parse(run.run_after ?? run.created_at)
  const facts = [[t("run_history.kind"), t(`run_kind.${run.kind}`)]]
  if (run.started_at)
    facts.push([
      t("run_history.waited"),
      t("runs.seconds", { n: seconds(Math.max(0, Date.parse(run.started_at) - due)) }),
    ])
  if (run.prompt) facts.push([t("run_history.model"), `${run.prompt.provider} · ${run.prompt.model}`])
  if (run.worker_id) facts.push([t("run_history.node"), run.worker_id])
  if (run.heartbeat_age_ms !== null)
    facts.push([t("run_history.heartbeat"), t("run_history.ago", { time: duration(run.heartbeat_age_ms) })])
  return facts
}

function reportOf({ failed, requeued, rounds_closed: closed }) {
  if (failed + closed === 0) return t("run_history.recovered_none")
  return t("run_history.recovered", { failed, requeued, closed })
}
