// The languages of the page, each by its own name.
import { el } from "../../base/dom.js"
import { LANGUAGES, locale, t } from "../../base/i18n.js"

// If `choose(tag)` throws, the language does not change.
export function languageSwitch({ choose, toasts }) {
  const click = async ({ currentTarget: { dataset } }) => {
    if (dataset.language === locale()) return
    await choose(dataset.language).catch((error) => toasts.error(error))
  }
  return el(
    "div",
    { class: "choices", role: "group", "aria-label": t("language.title") },
    LANGUAGES.map(({ tag, name }) =>
      el(
        "button",
        {
          class: "choice",
          type: "button",
          lang: tag,
          "data-language": tag,
          "aria-pressed": String(tag === locale()),
          on: { click },
        },
        name,
      ),
    ),
  )
}
