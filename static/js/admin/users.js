// All accounts: search, enable and disable, grant and revoke the admin role.
import { bdi, el, reconcile, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { shortTime } from "../base/time.js"
import { debounce } from "../base/timing.js"
import { avatar } from "../views/components/avatar.js"
import { button } from "../views/components/button.js"
import { confirm } from "../views/components/dialog.js"
import { field, input, select } from "../views/components/form.js"
import { menuButton } from "../views/components/menu.js"
import { card } from "../views/settings/settings_profile.js"
import { openNameDialog, openPasswordDialog } from "./user_dialogs.js"

const TYPED_MS = 250

export default class Users {
  #parts
  #users = []
  #list = el("ul", { class: "people" })
  #more = button(t("list.more"), { click: () => this.#load({ further: true }) })
  #text
  #status
  #request = 0

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
    this.#request += 1
  }

  // Private

  // A new search replaces the previous one; late responses are dropped.
  async #load({ further = false } = {}) {
    const request = ++this.#request
    const after = further ? this.#users.at(-1)?.id : null
    const query = { text: this.#text.value.trim(), status: this.#status.value, after }
    try {
      const page = await this.#parts.admin.users(query)
      if (request !== this.#request) return
      this.#users = further ? [...this.#users, ...page.data] : page.data
      this.#more.hidden = !page.has_more
      this.#show()
    } catch (error) {
      if (request === this.#request) this.#parts.toasts.error(error)
    }
  }

  #show() {
    if (this.#users.length === 0)
      return replace(this.#list, el("li", { class: "panel__empty" }, t("people.empty")))
    this.#list.querySelector(".panel__empty")?.remove()
    return reconcile(this.#list, this.#users, {
      key: (user) => String(user.id),
      create: (user) => this.#create(user),
      update: (node, user) => this.#fill(node, user),
    })
  }

  #create({ id }) {
    const menu = menuButton({ label: "", items: () => this.#items(this.#users.find((it) => it.id === id)) })
    return el("li", { class: "list__item" }, el("div", { class: "person" }), menu)
  }

  #fill(node, user) {
    node.classList.toggle("person--disabled", user.status === "disabled")
    const name = user.display_name
    node.querySelector(".icon-button").setAttribute("aria-label", t("people.menu", { name }))
    replace(
      node.querySelector(".person"),
      avatar({ name, size: "small" }),
      el(
        "div",
        { class: "list__main" },
        el("div", { class: "person__line" }, bdi(name, "truncate"), this.#tags(user)),
        el("p", { class: "field__hint" }, summary(user)),
      ),
    )
  }

  #tags(user) {
    const words = [
      this.#isMe(user) && t("member.you"),
      user.role === "admin" && t("people.admin"),
      user.is_guest && t("role.guest"),
      user.status === "disabled" && t("people.status_disabled"),
    ]
    return words.filter(Boolean).map((word) => el("span", { class: "tag" }, word))
  }

  #items(user) {
    const name = user.display_name
    const confirmed = (key, fields) => () => this.#confirmAndChange(key, user, fields)
    const items = [{ label: t("people.rename"), icon: "edit", run: () => this.#openDialog(openNameDialog, user) }]
    // Admins change their own password in the settings, which require the old one.
    if (!this.#isMe(user))
      items.push({ label: t("people.password"), icon: "key", run: () => this.#openDialog(openPasswordDialog, user) })
    if (user.role === "admin")
      items.push({ label: t("people.demote"), icon: "person", run: confirmed("demote", { role: "user" }) })
    // A guest cannot become an admin, because guests cannot sign in again.
    else if (!user.is_guest)
      items.push({ label: t("people.promote"), icon: "spark", run: confirmed("promote", { role: "admin" }) })
    if (user.status === "active")
      items.push({
        label: t("people.disable"),
        icon: "mute",
        danger: true,
        run: confirmed("disable", { status: "disabled" }),
      })
    else
      items.push({
        label: t("people.enable"),
        icon: "check",
        run: () => this.#change(user, { status: "active" }, t("people.enabled", { name })),
      })
    return items
  }

  // `key` selects the texts of the dialog.
  async #confirmAndChange(key, user, fields) {
    const name = user.display_name
    const words = {
      title: t(`people.${key}_title`, { name }),
      text: t(`people.${key}_text`, { name }),
      action: t(`people.${key}`),
    }
    if (await confirm(words)) await this.#change(user, fields, t(`people.${key}d`, { name }))
  }

  async #openDialog(dialog, user) {
    const changed = await dialog(this.#parts, user)
    if (changed) this.#put(changed)
  }

  async #change(user, fields, done) {
    try {
      this.#put(await this.#parts.admin.changeUser(user, fields))
      this.#parts.toasts.show(done)
    } catch (error) {
      this.#parts.toasts.error(error)
    }
  }

  #put(user) {
    this.#users = this.#users.map((it) => (it.id === user.id ? user : it))
    this.#show()
    // Someone who is no longer an admin leaves this page.
    if (this.#isMe(user) && user.role !== "admin") this.#parts.router.go("/")
  }

  #isMe({ id }) {
    return id === this.#parts.store.user.id
  }
}

// Returns the sessions, spaces and the last visit of a user in one line.
function summary({ username, n_sessions: sessions, n_spaces: spaces, last_seen_at: seen }) {
  const parts = [
    `@${username}`,
    sessions > 0 && t("people.browsers", { n: sessions }),
    t("people.spaces", { n: spaces }),
    seen ? t("people.seen", { at: shortTime(Date.parse(seen)) }) : t("people.unseen"),
  ]
  return bdi(parts.filter(Boolean).join(" · "))
}
