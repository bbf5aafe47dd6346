// The tools that the characters of the open space can call: built-in tools and MCP servers.
import { bdi, el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { serversOf, TOOLS, USES, usesOf } from "../../models/characters/tools.js"
import { button, submitButton } from "../components/button.js"
import { field, form, input, select } from "../components/form.js"

// `save({ uses, servers })` stores them.
export function toolsSection({ toasts }, { settings, disabled = false, save }) {
  const uses = usesOf(settings)
  const controls = TOOLS.map((name) => [
    name,
    field({ label: t(`tool.${name}`), hint: t(`tool.${name}_hint`), control: choice(uses[name]) }),
  ])
  const servers = serverList(serversOf(settings), disabled)
  const submit = async () => {
    const chosen = controls.map(([name, it]) => [name, it.control.value])
    await save({ uses: Object.fromEntries(chosen), servers: servers.value() })
    toasts.show(t("saved"))
  }
  const actions = el("div", { class: "form__actions form__actions--start" }, submitButton(t("save")))
  const node = form({
    submit,
    children: [...controls.map(([, it]) => it.node), servers.node, actions],
  })
  if (disabled) {
    for (const it of node.querySelectorAll("input, select")) it.disabled = true
    actions.remove()
  }
  return el(
    "section",
    { class: "panel__section", "data-section": "tools" },
    el("h2", {}, t("tools.title")),
    el("p", { class: "field__hint" }, t("tools.hint")),
    node,
  )
}

function choice(value) {
  return select(
    USES.map((use) => [use, t(`tool_use.${use}`)]),
    value,
  )
}

// The list of MCP servers, and the fields for another one.
function serverList(known, disabled) {
  const rows = known.map((server) => {
    const control = choice(server.use ?? "with_approval")
    control.setAttribute("aria-label", t("tools.server_use", { name: server.label }))
    return { server, control }
  })
  const label = field({ label: t("tools.server_label"), control: input({ maxlength: "64", autocomplete: "off" }) })
  const url = field({
    label: t("tools.server_url"),
    hint: t("tools.server_hint"),
    control: input({ type: "url", maxlength: "2000" }),
  })
  const list = el("ul", { class: "tool-calls" })
  for (const row of rows) {
    const remove = () => {
      rows.splice(rows.indexOf(row), 1)
      item.remove()
    }
    const item = el(
      "li",
      { class: "tool-calls__call" },
      bdi(row.server.label, "tool-calls__name"),
      el("span", { class: "tool-calls__text" }, bdi(row.server.url)),
      row.control,
      !disabled && button(t("tools.server_remove"), { look: "small quiet", click: remove }),
    )
    list.append(item)
  }
  const node = el(
    "details",
    { class: "note__more", open: known.length > 0 },
    el("summary", {}, t("tools.servers")),
    list,
    !disabled && [label.node, url.node],
  )
  const value = () => {
    const kept = rows.filter((it) => it.control.value !== "off")
    const servers = kept.map(({ server, control }) => ({ ...server, use: control.value }))
    const [name, address] = [label.control.value.trim(), url.control.value.trim()]
    const isNew = name !== "" || address !== ""
    return isNew ? [...servers, { label: name, url: address, use: "with_approval" }] : servers
  }
  return { node, value }
}
