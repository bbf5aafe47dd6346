// Times, durations and lists in the format of the language of the page.
import { locale, t } from "./i18n.js"

const TIMES = {
  clock: { hour: "2-digit", minute: "2-digit" },
  day: { weekday: "long", day: "numeric", month: "long" },
  dayOfYear: { day: "numeric", month: "long", year: "numeric" },
  full: { dateStyle: "full", timeStyle: "medium" },
  short: { dateStyle: "medium", timeStyle: "short" },
  date: { day: "numeric", month: "short", timeZone: "UTC" },
}
const DAY_MS = 24 * 60 * 60 * 1000
const UNITS = [
  ["day", DAY_MS],
  ["hour", 60 * 60 * 1000],
  ["minute", 60 * 1000],
  ["second", 1000],
]
// Formatters are cached because creating one is expensive.
const made = new Map()

export function timeOfDay(at) {
  return format("clock", at)
}
export function fullTime(at) {
  return format("full", at)
}
export function shortTime(at) {
  return format("short", at)
}

// A day of UTC, such as "2026-11-21".
export function utcDay(text) {
  return format("date", Date.parse(text))
}

export function dayName(at, now = Date.now()) {
  const distance = startOfDay(now) - startOfDay(at)
  if (distance === 0) return t("day.today")
  if (Math.round(distance / DAY_MS) === 1) return t("day.yesterday")
  return format(new Date(at).getFullYear() === new Date(now).getFullYear() ? "day" : "dayOfYear", at)
}

export function seconds(ms) {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 }).format(ms / 1000)
}

// A duration in its largest unit: "40 seconds", "3 hours".
export function duration(ms) {
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? UNITS.at(-1)
  const n = Math.max(0, Math.floor(ms / size))
  return new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: "long" }).format(n)
}

// "A, B and C".
export function list(names) {
  return new Intl.ListFormat(locale()).format(names)
}

// The same without the word before the last, as parts: `{ type: "element" | "literal", value }`.
export function listParts(names) {
  return new Intl.ListFormat(locale(), { style: "narrow" }).formatToParts(names)
}

function format(name, at) {
  const key = `${locale()} ${name}`
  if (!made.has(key)) made.set(key, new Intl.DateTimeFormat(locale(), TIMES[name]))
  return made.get(key).format(at)
}

function startOfDay(at) {
  return new Date(at).setHours(0, 0, 0, 0)
}
