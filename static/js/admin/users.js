// Everybody with an account: found by name, let in or kept out, given the office or relieved of it.
import { bdi, el, reconcile, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { shortTime } from "../base/time.js"
import { debounce } from "../base/timing.js"
import { avatar } from "../views/components/avatar.js"
import { button } from "../views/components/buttons.js"
import { confirm } from "../views/components/dialog.js"
import { field, input, select } from "../views/components/form.js"
import { menuButton } from "../views/components/menu.js"
import { card } from "../views/settings/settings_profile.js"
import { askForName, askForPassword } from "./user_dialogs.js"

const TYPED_MS = 250

export default class People {
  #parts
  #people = []
  #list = el("ul", { class: "people" })
  #more = button(t("list.more"), { click: () => this.#load({ further: true }) })
  #text
  #status
  #turn = 0

  constructor(parts) {
    this.#parts = parts
  }

  // Lifecycle

  mount(root) {
    const search = input({ type: "search", name: "q", autocomplete: "off", maxlength: "100" })
    const text = field({ label: t("people.search"), control: search })
    const statuses = ["", "active", "disabled"].map((it) => [it, t(`people.status_${it || "all"}`)])
    const status = field({ label: t("people.status"), control: select(statuses, "") })
    this.#text = text.control
    this.#status = status.control
    this.#text.addEventListener("input", debounce(() => this.#load(), TYPED_MS))
    this.#status.addEventListener("change", () => this.#load())
    this.#more.hidden = true
    const filters = el("div", { class: "filters" }, text.node, status.node)
    root.append(card(t("admin.people"), filters, this.#list, this.#more))
    this.#load()
  }

  unmount() {
    this.#turn += 1
  }

  // Private

  // What is typed meanwhile asks anew; an answer that comes too late is dropped.
  async #load({ further = false } = {}) {
    const turn = ++this.#turn
    const after = further ? this.#people.at(-1)?.id : null
    const query = { text: this.#text.value.trim(), status: this.#status.value, after }
    try {
      const page = await this.#parts.admin.people(query)
      if (turn !== this.#turn) return
      this.#people = further ? [...this.#people, ...page.data] : page.data
      this.#more.hidden = !page.has_more
      this.#show()
    } catch (error) {
      if (turn === this.#turn) this.#parts.toasts.error(error)
    }
  }

  #show() {
    if (this.#people.length === 0)
      return replace(this.#list, el("li", { class: "panel__empty" }, t("people.empty")))
    this.#list.querySelector(".panel__empty")?.remove()
    return reconcile(this.#list, this.#people, {
      key: (person) => String(person.id),
      create: (person) => this.#create(person),
      update: (node, person) => this.#fill(node, person),
    })
  }

  #create({ id }) {
    const menu = menuButton({ label: "", items: () => this.#items(this.#people.find((it) => it.id === id)) })
    return el("li", { class: "list__item" }, el("div", { class: "person" }), menu)
  }

  #fill(node, person) {
    node.classList.toggle("person--disabled", person.status === "disabled")
    const name = person.display_name
    node.querySelector(".icon-button").setAttribute("aria-label", t("people.menu", { name }))
    replace(
      node.querySelector(".person"),
      avatar({ name, size: "small" }),
      el(
        "div",
        { class: "list__main" },
        el("div", { class: "person__line" }, bdi(name, "truncate"), this.#tags(person)),
        el("p", { class: "field__hint" }, traces(person)),
      ),
    )
  }

  #tags(person) {
    const words = [
      this.#isMe(person) && t("member.you"),
      person.role === "admin" && t("people.admin"),
      person.is_guest && t("role.guest"),
      person.status === "disabled" && t("people.status_disabled"),
    ]
    return words.filter(Boolean).map((word) => el("span", { class: "tag" }, word))
  }

  #items(person) {
    const name = person.display_name
    const asked = (key, fields) => () => this.#askAndChange(key, person, fields)
    const items = [{ label: t("people.rename"), icon: "edit", run: () => this.#ask(askForName, person) }]
    // One's own is changed in the settings, where the old one is asked for.
    if (!this.#isMe(person))
      items.push({ label: t("people.password"), icon: "key", run: () => this.#ask(askForPassword, person) })
    if (person.role === "admin")
      items.push({ label: t("people.demote"), icon: "person", run: asked("demote", { role: "user" }) })
    // A guest could not come back to the office.
    else if (!person.is_guest)
      items.push({ label: t("people.promote"), icon: "spark", run: asked("promote", { role: "admin" }) })
    if (person.status === "active")
      items.push({
        label: t("people.disable"),
        icon: "mute",
        danger: true,
        run: asked("disable", { status: "disabled" }),
      })
    else
      items.push({
        label: t("people.enable"),
        icon: "check",
        run: () => this.#change(person, { status: "active" }, t("people.enabled", { name })),
      })
    return items
  }

  // `key` names the words of the question.
  async #askAndChange(key, person, fields) {
    const name = person.display_name
    const words = {
      title: t(`people.${key}_title`, { name }),
      text: t(`people.${key}_text`, { name }),
      action: t(`people.${key}`),
    }
    if (await confirm(words)) await this.#change(person, fields, t(`people.${key}d`, { name }))
  }

  async #ask(dialog, person) {
    const changed = await dialog(this.#parts, person)
    if (changed) this.#put(changed)
  }

  async #change(person, fields, done) {
    try {
      this.#put(await this.#parts.admin.change(person, fields))
      this.#parts.toasts.show(done)
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  #put(person) {
    this.#people = this.#people.map((it) => (it.id === person.id ? person : it))
    this.#show()
    // Who is no admin any more has nothing to look for here.
    if (this.#isMe(person) && person.role !== "admin") this.#parts.router.go("/")
  }

  #isMe({ id }) {
    return id === this.#parts.store.user.id
  }
}

// Where somebody is signed in and sits, and when they were last seen.
function traces({ username, n_sessions: sessions, n_spaces: spaces, last_seen_at: seen }) {
  const parts = [
    `@${username}`,
    sessions > 0 && t("people.browsers", { n: sessions }),
    t("people.spaces", { n: spaces }),
    seen ? t("people.seen", { at: shortTime(Date.parse(seen)) }) : t("people.unseen"),
  ]
  return bdi(parts.filter(Boolean).join(" · "))
}
