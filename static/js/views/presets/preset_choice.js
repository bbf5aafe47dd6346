// Selects the preset of a space or a member, and shows which layer sets which value.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { paths } from "../../router.js"
import { decided } from "../../models/presets/preset_document.js"
import { button } from "../components/button.js"
import { field, select } from "../components/form.js"
import { openPresetDialog } from "./preset_editor.js"

// `choose(id)` applies at once. `layers()` returns the settings of the layers and the ids of their
// presets.
export function presetChoice(parts, { label, hint, value, mayChange, choose, layers }) {
  const control = select([["", t("preset.none")]], "")
  control.disabled = true
  const edit = button(t("preset.edit"), {
    look: "small quiet",
    icon: "edit",
    hidden: !value,
    "data-act": "preset",
  })
  const fail = (error) => parts.toasts.error(error)
  const fill = () =>
    load(parts, value).then((known) => {
      const options = known.map(({ id, name }) => [String(id), name])
      replace(
        control,
        [["", t("preset.none")], ...options].map(([key, name]) =>
          el("option", { value: key, selected: key === String(value ?? "") }, name),
        ),
      )
      control.disabled = !mayChange
    })
  control.addEventListener("change", () => {
    const id = control.value === "" ? null : Number(control.value)
    choose(id).catch((error) => {
      control.value = String(value ?? "")
      fail(error)
    })
  })
  edit.addEventListener("click", () =>
    openPresetDialog(parts, value)
      .then((saved) => saved && fill())
      .catch(fail),
  )
  const it = field({ label, hint, control })
  const looks = "button button--small button--quiet"
  const library = el("a", { class: looks, href: paths.settings("presets") }, t("preset.library"))
  it.node.append(el("div", { class: "member__buttons" }, edit, library), whatApplies(parts, layers))
  fill().catch(fail)
  return it.node
}

// Returns the user's presets and the selected one.
async function load({ presets }, value) {
  const own = await presets.listOwn()
  if (!value || own.some(({ id }) => id === value)) return own
  const chosen = await presets.find(value)
  return [...own, chosen ?? { id: value, name: t("preset.unknown") }]
}

function whatApplies(parts, layers) {
  const body = el("div", { class: "preset__applies" })
  const details = el(
    "details",
    { class: "block" },
    el("summary", { class: "block__summary" }, t("preset.applies")),
    body,
  )
  details.addEventListener("toggle", () => {
    if (details.open) showLayers(parts, layers(), body).catch((error) => parts.toasts.error(error))
  })
  return details
}

async function showLayers({ presets }, { member = null, memberPresetId = null, space, spacePresetId }, body) {
  const [ofMember, ofSpace] = await Promise.all([presets.find(memberPresetId), presets.find(spacePresetId)])
  const rows = decided({
    member,
    memberPreset: ofMember?.document ?? null,
    space,
    spacePreset: ofSpace?.document ?? null,
  })
  const names = {
    member: t("preset.from_member"),
    member_preset: ofMember?.name ?? "",
    space: t("preset.from_space"),
    space_preset: ofSpace?.name ?? "",
  }
  const row = ({ key, value, from, over }) => [
    el("dt", {}, t(`preset.${key === "prompt_order" ? "order" : key}`)),
    el(
      "dd",
      {},
      el("span", {}, shown(key, value)),
      el(
        "span",
        { class: "field__hint" },
        over.length > 0
          ? t("preset.from_over", { name: names[from], over: names[over[0]] })
          : t("preset.from", { name: names[from] }),
      ),
    ),
  ]
  replace(
    body,
    rows.length === 0
      ? el("p", { class: "field__hint" }, t("preset.nothing"))
      : el("dl", { class: "run__list" }, rows.map(row)),
    el("p", { class: "field__hint" }, t("preset.rest")),
  )
}

function shown(key, value) {
  if (key !== "prompt_order") return Array.isArray(value) ? value.join(", ") : String(value)
  return t("preset.n_entries", { n: value.filter(({ enabled = true }) => enabled).length })
}
