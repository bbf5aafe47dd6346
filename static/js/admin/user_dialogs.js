// Dialogs in which an admin sets the name or the password of a user.
import { el } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { randomPassword } from "../base/ids.js"
import { button, submitButton } from "../views/components/button.js"
import { openDialog } from "../views/components/dialog.js"
import { field, form, input } from "../views/components/form.js"

// Each resolves to the changed account, or undefined if nothing was changed.
export function openNameDialog({ admin, toasts }, user) {
  const name = field({
    label: t("people.name"),
    hint: t("profile.name_hint"),
    control: input({ name: "display_name", value: user.display_name, maxlength: "100", autofocus: true }),
  })
  return openForm({
    title: t("people.rename_title", { name: user.display_name }),
    fields: { display_name: name },
    action: t("save"),
    submit: async () => {
      const changed = await admin.changeUser(user, { display_name: name.control.value.trim() })
      toasts.show(t("saved"))
      return changed
    },
  })
}

export function openPasswordDialog({ admin, toasts }, user) {
  const password = field({
    label: t("password.new"),
    hint: t("password.hint"),
    control: input({
      name: "password",
      maxlength: "256",
      autocomplete: "off",
      spellcheck: "false",
      autofocus: true,
    }),
  })
  const make = button(t("people.password_make"), {
    click: () => {
      password.control.value = randomPassword()
    },
  })
  return openForm({
    title: t("people.password_title", { name: user.display_name }),
    lead: t("people.password_text", { name: user.display_name }),
    fields: { password },
    before: make,
    action: t("people.password"),
    submit: async () => {
      const changed = await admin.changeUser(user, { password: password.control.value })
      toasts.show(t("people.password_set", { name: user.display_name }))
      return changed
    },
  })
}

function openForm({ title, lead = null, fields, before = null, action, submit }) {
  return openDialog({
    title,
    content: (close) => [
      lead && el("p", { class: "dialog__lead" }, lead),
      form({
        fields,
        submit: async () => close(await submit()),
        children: [
          Object.values(fields).map(({ node }) => node),
          el("div", { class: "form__actions" }, before, submitButton(action)),
        ],
      }),
    ],
  })
}
