// One operation: its path and summary; parameters and responses are rendered when it is opened.
import { el, icon } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { copyText } from "../base/clipboard.js"
import { button } from "../views/components/button.js"
import { curlOf } from "./curl.js"
import { paragraphs, prose } from "./prose.js"
import { fieldRow, schemaView } from "./schema_view.js"

export function operationView(operation, reference) {
  const details = el(
    "details",
    { class: "operation", id: operation.id, "data-method": operation.method },
    el(
      "summary",
      { class: "operation__line" },
      el("span", { class: "operation__method" }, operation.method),
      el("code", { class: "operation__path" }, pathParts(operation.path)),
      el("span", { class: "operation__summary", lang: "en" }, prose(operation.summary)),
      icon("chevron"),
    ),
  )
  const fill = () => details.append(el("div", { class: "operation__body" }, body(operation, reference)))
  details.addEventListener("toggle", fill, { once: true })
  return details
}

function body(operation, reference) {
  return [
    paragraphs(operation.about, "operation__about"),
    el(
      "p",
      { class: "operation__marks" },
      operation.isOpen && el("span", { class: "tag" }, t("docs.open")),
      el("a", { href: `#${operation.id}`, class: "operation__id", "aria-label": t("docs.link") }, operation.id),
    ),
    curlView(operation, reference),
    parametersView(operation, reference),
    operation.body && bodyView(operation, reference),
    framesView(t("docs.from_client"), operation.fromClient, reference),
    framesView(t("docs.from_server"), operation.fromServer, reference),
    answersView(operation, reference),
  ]
}

function curlView(operation, reference) {
  const line = curlOf(operation, reference, location.origin)
  const status = el("span", { class: "operation__copied", role: "status" })
  const click = async () => {
    if (await copyText(line)) status.textContent = t("docs.copied")
  }
  return section(
    t("docs.curl"),
    el("pre", { class: "operation__curl" }, el("code", {}, line)),
    el("p", { class: "operation__copy" }, button(t("docs.copy"), { look: "small", icon: "copy", click }), status),
  )
}

function parametersView({ parameters }, reference) {
  if (parameters.length === 0) return null
  const rows = parameters.map(({ name, schema, required, description, in: place }) =>
    fieldRow(
      {
        name,
        schema: description ? { ...schema, description } : schema,
        isNeeded: required,
        extra: t(`docs.in_${place}`),
      },
      reference,
    ),
  )
  return section(
    t("docs.parameters"),
    el(
      "ul",
      { class: "schema__fields" },
      rows.map((row) => el("li", { class: "schema__field" }, row)),
    ),
  )
}

function bodyView({ body: { schema, isNeeded } }, reference) {
  return section(isNeeded ? t("docs.body") : t("docs.body_optional"), schemaView(schema, reference))
}

function framesView(title, schema, reference) {
  return schema && section(title, schemaView(schema, reference))
}

function answersView({ answers }, reference) {
  return section(
    t("docs.answers"),
    el(
      "ul",
      { class: "operation__answers" },
      answers.map((answer) => el("li", {}, answerView(answer, reference))),
    ),
  )
}

function answerView(answer, reference) {
  const line = [
    el("span", { class: `status status--${answer.isError ? "error" : "good"}` }, answer.status),
    el("span", { class: "operation__means", lang: "en" }, prose(answer.about)),
  ]
  if (!answer.schema && answer.headers.length === 0 && !answer.mediaType) {
    return el("div", { class: "operation__answer" }, line)
  }
  const details = el("details", { class: "schema__more" }, el("summary", { class: "operation__answer" }, line))
  const fill = () =>
    details.append(
      el(
        "div",
        { class: "schema__inside" },
        answer.headers.length > 0 &&
          el("p", { class: "schema__note" }, t("docs.sets_headers", { names: answer.headers.join(", ") })),
        answer.mediaType && el("p", { class: "schema__note" }, el("code", {}, answer.mediaType)),
        answer.schema && schemaView(answer.schema, reference),
      ),
    )
  details.addEventListener("toggle", fill, { once: true })
  return details
}

function section(title, ...content) {
  return el("section", { class: "operation__section" }, el("h4", {}, title), content)
}

// Path parameters are highlighted, and a long path may break after a slash.
function pathParts(path) {
  return path.split(/(?<=\/)|(\{\w+\})/).map((part) => {
    if (!part) return null
    return part.startsWith("{") ? el("span", { class: "operation__place" }, part) : [part, el("wbr")]
  })
}
