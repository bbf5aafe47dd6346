// The tab "Prompt": the prompt for a speaker, and the runs of the conversation.
import { bdi, el, reconcile, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { fullTime, shortTime } from "../../base/time.js"
import { may } from "../../models/members/rights.js"
import { button } from "../components/button.js"
import { showPrompt, showPromptOfRun } from "./prompt_dialog.js"
import { detailList, detailsOf } from "./run_details.js"

export default class RunsTab {
  #root
  #parts
  #list = el("div", {})
  #prompt = el("section", { class: "panel__section" })
  #speaker
  #stops = []
  #runs = null
  #isLoading = false
  #again = false

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  // Lifecycle

  mount() {
    const { store } = this.#parts
    replace(
      this.#root,
      this.#prompt,
      el(
        "section",
        { class: "panel__section" },
        el("div", { class: "panel__title" }, el("h2", {}, t("runs.title"))),
        this.#list,
      ),
    )
    this.#stops = [
      store.onAny(["queue", "messages", "restored"], () => this.#load()),
      store.on("roster", () => this.#updateRoster()),
      store.on("rights", () => this.#showPrompt()),
    ]
    this.#showPrompt()
    this.#load()
  }

  unmount() {
    for (const stop of this.#stops) stop()
  }

  // Private

  #showPrompt() {
    const isAllowed = may(this.#parts.store.openSpace?.my_role, "prompt")
    this.#prompt.hidden = !isAllowed
    this.#speaker = el("select", { class: "input", "aria-label": t("prompt.speaker") })
    replace(
      this.#prompt,
      isAllowed && [
        el("div", { class: "panel__title" }, el("h2", {}, t("prompt.title"))),
        el("p", { class: "field__hint" }, t("prompt.hint")),
        el(
          "div",
          { class: "field__row" },
          this.#speaker,
          button(t("prompt.show"), { click: (event) => this.#showPreview(event) }),
        ),
      ],
    )
    this.#fillSpeakers()
  }

  async #showPreview({ currentTarget }) {
    currentTarget.disabled = true
    await showPrompt(this.#parts, () => this.#parts.conversation.promptPreview(Number(this.#speaker.value) || null))
    currentTarget.disabled = false
  }

  // The runs may arrive before the roster.
  #updateRoster() {
    this.#fillSpeakers()
    if (this.#runs) this.#show()
  }

  #fillSpeakers() {
    const chosen = this.#speaker.value
    const { speakers } = this.#parts.store.openRoster
    replace(
      this.#speaker,
      speakers.map((member) =>
        el(
          "option",
          { value: String(member.id), selected: String(member.id) === chosen },
          member.display_name,
        ),
      ),
    )
  }

  // Only one request at a time; a change during a request causes another one.
  async #load() {
    this.#again = true
    if (this.#isLoading) return
    this.#isLoading = true
    while (this.#again) {
      this.#again = false
      try {
        this.#runs = await this.#parts.conversation.runs()
        this.#show()
      } catch {
        // The list keeps its content; the next change loads it again.
      }
    }
    this.#isLoading = false
  }

  #show() {
    const sorted = [...this.#runs].sort((a, b) => b.run_seq - a.run_seq)
    if (sorted.length === 0) return replace(this.#list, el("p", { class: "panel__empty" }, t("runs.empty")))
    this.#list.querySelector(".panel__empty")?.remove()
    return reconcile(this.#list, sorted, {
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

  #speakerOf({ speaker_space_membership_id: id }) {
    if (id === null) return t("director.name")
    return this.#parts.store.openRoster.nameOf(id) ?? t("message.unknown_author")
  }

  #fill(node, run) {
    const name = run.private ? t("runs.private") : this.#speakerOf(run)
    const signature = JSON.stringify([name, run])
    if (node.dataset.signature === signature) return
    node.dataset.signature = signature
    node.className = `run run--${run.status}`
    const at = Date.parse(run.started_at ?? run.created_at)
    replace(
      node.querySelector("summary"),
      el("span", { class: "grow truncate" }, bdi(name)),
      el("time", { class: "member__note", datetime: run.created_at, title: fullTime(at) }, shortTime(at)),
      el("span", { class: "run__state" }, t(`run_status.${run.status}`)),
    )
    // Only runs that called a model have a prompt; that of a canceled run is stored a moment later.
    const wasAsked = run.prompt || (run.status === "canceled" && run.started_at)
    const isTold = wasAsked && may(this.#parts.store.openSpace?.my_role, "prompt")
    replace(
      node.querySelector(".run__facts"),
      !run.private && detailList(detailsOf(run)),
      isTold &&
        button(t("prompt.of_run"), {
          look: "small quiet",
          click: () => showPromptOfRun(this.#parts, run.id),
        }),
    )
  }
}
