// Describes a schema: its kind, its limits and its content. Independent of the DOM.
import { nameOf } from "./reference.js"

// Limits of 64-bit numbers and the exclusion of U+0000 are not shown.
const SILENT_PATTERN = "^[^\\u0000]*$"
const MOST_PATTERN = 60

// Returns `{kind, name, isNullable, words, items, choices, fields, isClosed, bounds, about}`. `kind` is
// a JSON type, "choice" or "any"; the content is in `items`, `choices` or `fields`.
export function shapeOf(schema, reference) {
  const { inner, isNullable } = withoutNull(schema)
  const named = inner.$ref ? reference.resolve(inner) : inner
  const choices = named.oneOf ?? named.anyOf ?? null
  if (choices && !inner.$ref && choices.length === 1) return shapeOf(choices[0], reference)
  return {
    name: nameOf(inner),
    kind: choices ? "choice" : kindOf(named),
    isNullable: isNullable || typesOf(named).includes("null"),
    words: (named.enum ?? []).filter((word) => word !== null),
    items: named.items ?? null,
    choices: choices ?? [],
    fields: fieldsOf(named),
    isClosed: named.additionalProperties === false,
    bounds: boundsOf(named),
    about: inner.description ?? named.description ?? "",
  }
}

// Returns an example with all required fields; without any, with the first optional field.
export function exampleOf(schema, reference, depth = 0) {
  const { inner } = withoutNull(schema)
  const named = reference.resolve(inner)
  const choices = named.oneOf ?? named.anyOf
  if (choices) return exampleOf(choices[0], reference, depth)
  if (named.default !== undefined) return named.default
  if (named.enum) return named.enum[0]
  switch (kindOf(named)) {
    case "object":
      return objectExample(named, reference, depth)
    case "array":
      return depth > 2 ? [] : [exampleOf(named.items, reference, depth + 1)]
    case "integer":
    case "number":
      return Math.max(named.minimum ?? 1, 1)
    case "boolean":
      return true
    case "string":
      return textExample(named)
    default:
      return null
  }
}

function objectExample({ properties = {}, required = [] }, reference, depth) {
  const all = Object.keys(properties)
  const names = all.filter((name) => required.includes(name))
  const shown = names.length > 0 || depth > 0 ? names : all.slice(0, 1)
  return Object.fromEntries(shown.map((name) => [name, exampleOf(properties[name], reference, depth + 1)]))
}

function textExample({ format, minLength = 0 }) {
  if (format === "uuid") return "00000000-0000-7000-8000-000000000000"
  if (format === "uri") return "http://localhost:11434/v1"
  return "…".padEnd(minLength, "…")
}

// Splits a nullable schema into the schema and the flag.
function withoutNull(schema) {
  const choices = schema.oneOf ?? schema.anyOf
  const others = choices?.filter((it) => it.type !== "null")
  if (!choices || others.length === choices.length || others.length !== 1) return { inner: schema, isNullable: false }
  return { inner: others[0], isNullable: true }
}

function typesOf({ type }) {
  return [type ?? []].flat()
}

function kindOf(schema) {
  if (schema.properties) return "object"
  return typesOf(schema).find((it) => it !== "null") ?? "any"
}

function fieldsOf({ properties = {}, required = [] }) {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    schema,
    isNeeded: required.includes(name),
  }))
}

function boundsOf(schema) {
  const pattern = schema.pattern
  const isTelling = pattern && pattern !== SILENT_PATTERN && pattern.length <= MOST_PATTERN
  return {
    least: sensible(schema.minimum),
    most: sensible(schema.maximum),
    above: sensible(schema.exclusiveMinimum),
    shortest: schema.minLength ?? null,
    longest: schema.maxLength ?? null,
    mostItems: schema.maxItems ?? null,
    format: schema.format?.startsWith("int") || schema.format === "double" ? null : (schema.format ?? null),
    pattern: isTelling ? pattern : null,
    usual: schema.default ?? null,
  }
}

function sensible(bound) {
  return Number.isSafeInteger(bound) || (bound !== undefined && Math.abs(bound) < 1) ? bound : null
}
