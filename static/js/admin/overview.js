// Statistics of the server: totals, and token use by space and day.
import { bdi, el, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { amount, whole } from "../base/numbers.js"
import { duration, utcDay } from "../base/time.js"
import { ALL, byDay, bySpace } from "../models/runs/token_use.js"
import { field, select } from "../views/components/form.js"
import { card } from "../views/settings/settings_profile.js"

const SPANS = [7, 30, 90]
const COLUMNS = ["prompt_tokens", "completion_tokens", "runs", "failed"]

export default class Overview {
  #parts
  #figures = el("dl", { class: "figures" })
  #memory = el("dl", { class: "figures", "data-section": "memory" })
  #bySpace = el("div", {})
  #byDay = el("div", {})
  #days
  #space
  #use = null
  #request = 0

  constructor(parts) {
    this.#parts = parts
  }

  // Lifecycle

  mount(root) {
    const spans = SPANS.map((n) => [String(n), t("token_use.last", { n })])
    const days = field({ label: t("token_use.days"), control: select(spans, "30") })
    const space = field({ label: t("token_use.space"), control: select([[ALL, t("token_use.all")]], ALL) })
    this.#days = days.control
    this.#space = space.control
    this.#days.addEventListener("change", () => this.#load())
    this.#space.addEventListener("change", () => this.#showDays())
    root.append(
      card(t("admin.figures"), this.#figures),
      card(t("admin.memory"), el("p", { class: "soft" }, t("admin.memory_note")), this.#memory),
      card(
        t("token_use.title"),
        el("p", { class: "soft" }, t("token_use.note")),
        el("div", { class: "filters" }, days.node, space.node),
        this.#bySpace,
        this.#byDay,
      ),
    )
    this.#load()
  }

  unmount() {
    this.#request += 1
  }

  // Private

  async #load() {
    const request = ++this.#request
    try {
      const stats = await this.#parts.admin.stats(this.#days.value)
      if (request === this.#request) this.#show(stats)
    } catch (error) {
      if (request === this.#request) this.#parts.toasts.error(error)
    }
  }

  #show(stats) {
    this.#use = stats.token_use
    replace(this.#figures, figuresOf(stats).map(figure))
    replace(this.#memory, memoryFigures(stats.memory).map(figure))
    const spaces = bySpace(this.#use)
    replace(this.#bySpace, el("h3", { class: "settings__part" }, t("token_use.by_space")), spaceTable(spaces))
    this.#fillSpaces(spaces)
    this.#showDays()
  }

  #fillSpaces(spaces) {
    const chosen = spaces.some(({ key }) => key === this.#space.value) ? this.#space.value : ALL
    const options = [[ALL, t("token_use.all")], ...spaces.map((space) => [space.key, nameOf(space)])]
    replace(
      this.#space,
      options.map(([value, label]) => el("option", { value, selected: value === chosen }, label)),
    )
  }

  #showDays() {
    if (!this.#use) return
    const days = byDay(this.#use, this.#space.value)
    replace(
      this.#byDay,
      el("h3", { class: "settings__part" }, t("token_use.by_day")),
      table(t("token_use.day"), days, (line) => el("time", { datetime: line.day }, utcDay(line.day))),
    )
  }
}

function figuresOf({ totals, version, database, uptime_ms: uptime }) {
  const age = totals.oldest_queued_age_ms
  const waited = age === null ? null : duration(age)
  return [
    ["users", amount(totals.users), totals.guests > 0 && t("figure.guests", { n: totals.guests })],
    ["active_sessions", amount(totals.active_sessions)],
    ["open_sockets", amount(totals.open_sockets)],
    ["spaces", amount(totals.spaces)],
    ["conversations", amount(totals.conversations)],
    ["messages", amount(totals.messages)],
    ["running_runs", amount(totals.running_runs)],
    ["queued_runs", amount(totals.queued_runs), waited !== null && t("figure.oldest", { time: waited })],
    ["version", version, database],
    ["uptime", duration(uptime)],
  ]
}

function memoryFigures({ breakers, oldest_task_age_ms: age, ...memory }) {
  const open = breakers.filter((it) => it.open)
  const names = open.map((it) => `${it.model} (${it.provider})`).join(", ")
  return [
    ["memories", amount(memory.memories)],
    ["vectors_stale", amount(memory.vectors_stale)],
    ["queued_tasks", amount(memory.queued_tasks), age !== null && t("figure.oldest", { time: duration(age) })],
    ["running_tasks", amount(memory.running_tasks)],
    ["failed_tasks", amount(memory.failed_tasks)],
    ["open_breakers", amount(open.length), open.length > 0 && names],
    ["memory_tokens", amount(memory.tokens_used)],
  ]
}

function figure([name, value, note = null]) {
  return el(
    "div",
    { class: "figure", "data-figure": name },
    el("dt", { class: "figure__name" }, t(`figure.${name}`)),
    el("dd", { class: "figure__value" }, value),
    note && el("dd", { class: "figure__note" }, note),
  )
}

function spaceTable(spaces) {
  if (spaces.length === 0) return el("p", { class: "panel__empty" }, t("token_use.empty"))
  return table(t("token_use.space"), spaces, (line) => bdi(nameOf(line)))
}

// Spaces that are reported together, or were deleted, have no name.
function nameOf({ name }) {
  return name ?? t("token_use.other_spaces")
}

// A table with one row for each line and a bar below its name.
function table(about, lines, nameCell) {
  const titles = COLUMNS.map((name) => el("th", { scope: "col", class: "table__n" }, t(`token_use.${name}`)))
  const row = (line) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", class: "table__name" }, nameCell(line), bar(line.share)),
      COLUMNS.map((name) => el("td", { class: "table__n", title: whole(line[name]) }, amount(line[name]))),
    )
  return el(
    "table",
    { class: "table" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, about), titles)),
    el("tbody", {}, lines.map(row)),
  )
}

// The bar repeats the numbers next to it and is hidden from screen readers.
function bar(share) {
  const fill = el("span", { class: "bar__fill" })
  fill.style.transform = `scaleX(${share})`
  return el("span", { class: "bar", "aria-hidden": "true" }, fill)
}
