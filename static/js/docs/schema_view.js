// A schema as a tree. Nested schemas are rendered when they are opened, because a schema may refer to
// itself.
import { el } from "../base/dom.js"
import { t } from "../base/i18n.js"
import { prose } from "./prose.js"
import { shapeOf } from "./shape.js"

// Renders the kind of a value and its fields, choices or items.
export function schemaView(schema, reference) {
  const shape = shapeOf(schema, reference)
  return el("div", { class: "schema" }, kindLine(shape, reference), inside(shape, reference))
}

function kindLine(shape, reference) {
  return el("p", { class: "schema__line" }, kindOf(shape, reference), facts(shape), describe(shape.about))
}

// Renders the content of a value; null if it has none.
function inside(shape, reference) {
  if (shape.items) return innermost(shape, reference)
  if (shape.choices.length > 0) return choices(shape, reference)
  if (shape.fields.length > 0) return fields(shape, reference)
  return null
}

function innermost(shape, reference) {
  return inside(shapeOf(shape.items, reference), reference)
}

function fields({ fields: all, isClosed }, reference) {
  return [
    el(
      "ul",
      { class: "schema__fields" },
      all.map((field) => el("li", { class: "schema__field" }, fieldRow(field, reference))),
    ),
    isClosed && el("p", { class: "schema__note" }, t("docs.no_other_fields")),
  ]
}

function choices(shape, reference) {
  return el(
    "ul",
    { class: "schema__fields" },
    shape.choices.map((choice) => {
      const inner = shapeOf(choice, reference)
      const line = [kindOf(inner, reference), facts(inner), describe(inner.about)]
      return el("li", { class: "schema__field" }, expandable(line, inner, reference))
    }),
  )
}

export function fieldRow({ name, schema, isNeeded, extra = null }, reference) {
  const shape = shapeOf(schema, reference)
  const line = [
    el("code", { class: "schema__name" }, name),
    kindOf(shape, reference),
    shape.isNullable && el("span", { class: "schema__fact" }, t("docs.or_null")),
    isNeeded && el("span", { class: "schema__needed" }, t("docs.needed")),
    extra && el("span", { class: "schema__fact" }, extra),
    facts(shape),
    describe(shape.about),
  ]
  return expandable(line, shape, reference)
}

function expandable(line, shape, reference) {
  if (!hasInside(shape, reference)) return el("div", { class: "schema__row" }, line)
  const details = el("details", { class: "schema__more" }, el("summary", { class: "schema__row" }, line))
  const fill = () => details.append(el("div", { class: "schema__inside" }, inside(shape, reference)))
  details.addEventListener("toggle", fill, { once: true })
  return details
}

function hasInside(shape, reference) {
  if (shape.items) return hasInside(shapeOf(shape.items, reference), reference)
  return shape.choices.length > 0 || shape.fields.length > 0
}

function kindOf(shape, reference) {
  return el("span", { class: "schema__kind" }, kindText(shape, reference))
}

function kindText(shape, reference) {
  if (shape.items) return t("docs.list_of", { name: kindText(shapeOf(shape.items, reference), reference) })
  return shape.name ?? t(`docs.type_${shape.kind}`)
}

function facts({ words, bounds }) {
  const texts = [
    rangeText(bounds),
    lengthText(bounds),
    bounds.mostItems && t("docs.most_items", { n: bounds.mostItems }),
    bounds.usual !== null && t("docs.default", { value: String(bounds.usual) }),
  ]
  const codes = [bounds.format, bounds.pattern, ...words].filter(Boolean)
  return [
    texts.filter(Boolean).map((text) => el("span", { class: "schema__fact" }, text)),
    codes.length > 0 && el("span", { class: "schema__words" }, codes.map((code) => el("code", {}, String(code)))),
  ]
}

function rangeText({ least, most, above }) {
  if (least !== null && most !== null) return t("docs.from_to", { least, most })
  return [
    least !== null && t("docs.at_least", { n: least }),
    above !== null && t("docs.above", { n: above }),
    most !== null && t("docs.at_most", { n: most }),
  ]
    .filter(Boolean)
    .join(", ")
}

function lengthText({ shortest, longest }) {
  if (longest === null) return null
  return shortest === null
    ? t("docs.longest", { n: longest })
    : t("docs.length", { least: shortest, most: longest })
}

function describe(about) {
  return about !== "" && el("span", { class: "schema__about", lang: "en" }, prose(about))
}
