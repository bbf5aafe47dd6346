// The user's own membership: persona, aliases, name and translations in this space.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { readAliases } from "../../models/members/aliases.js"
import { submitButton } from "../components/button.js"
import { openDialog } from "../components/dialog.js"
import { area, field, form, input, select, trackChanges } from "../components/form.js"

export function personaField(props = {}) {
  return field({
    label: t("member.persona"),
    hint: t("member.persona_hint"),
    control: area({ name: "persona", maxlength: "20000", ...props }),
  })
}

const TRANSLATE = ["off", "on_demand", "always"]

export function openMyMembershipDialog({ members, store, toasts }, member) {
  let typed
  return openDialog({
    title: t("member.edit"),
    isUnsaved: () => typed.isUnsaved(),
    content: (close) => {
      const persona = personaField({ value: member.persona ?? "", autofocus: true })
      const aliases = field({
        label: t("member.aliases"),
        hint: t("member.aliases_hint"),
        control: input({ name: "aliases", value: member.aliases.join(", "), autocomplete: "off" }),
      })
      const name = field({
        label: t("invitation.name"),
        hint: t("member.name_hint"),
        control: input({ name: "display_name", value: member.display_name, maxlength: "100", autocomplete: "off" }),
      })
      const translate = field({
        label: t("member.translate"),
        hint: t("member.translate_hint"),
        control: select(
          TRANSLATE.map((key) => [key, t(`member.translate_${key}`)]),
          member.translate ?? "on_demand",
        ),
      })
      // Without a provider nothing is translated.
      translate.node.hidden = !store.space(member.space_id)?.translation_provider_id
      typed = trackChanges({ name, persona, aliases, translate })
      const submit = async () => {
        await members.setPersona(member, {
          persona: persona.control.value.trim() || null,
          aliases: readAliases(aliases.control.value),
          displayName: changedName(name.control.value.trim(), member),
          translate: translate.node.hidden ? undefined : translate.control.value,
        })
        toasts.show(t("saved"))
        close(true)
      }
      const buttons = el("div", { class: "form__actions" }, submitButton(t("save")))
      const children = [name.node, persona.node, aliases.node, translate.node, buttons]
      return form({ fields: { display_name: name, persona, aliases }, submit, children })
    },
  })
}

// Returns undefined if the name is unchanged, and null for an empty field, which restores the name of
// the account.
function changedName(name, member) {
  if (name === member.display_name) return undefined
  return name || null
}
