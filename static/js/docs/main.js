// Entry point of the API reference: sets the language, loads the document, shows the page.
import Api from "../api.js"
import { el, replace } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { storage } from "../base/storage.js"
import Language from "../language.js"
import { button } from "../views/components/button.js"
import Page from "./page.js"
import Reference from "./reference.js"

const root = document.getElementById("docs")
const api = new Api()

start()

async function start() {
  await new Language({ local: storage("localStorage"), session: null }).start()
  await show()
}

async function show() {
  replace(root, el("p", { class: "docs__state", role: "status" }, t("loading")))
  try {
    const reference = new Reference(await api.reference())
    document.title = t("docs.title", { name: t("app.name") })
    new Page(root, reference).mount()
  } catch {
    replace(
      root,
      el(
        "div",
        { class: "docs__state", role: "alert" },
        el("p", {}, t("docs.failed")),
        button(t("retry"), { look: "primary", icon: "retry", click: show }),
      ),
    )
  }
}
